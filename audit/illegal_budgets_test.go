package audit_test

import (
	"encoding/json"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
)

// budgeted is a plan of two steps, whose first is done and has used 600 tokens, of a tenant that may
// use many more.
func (d *dishonest) budgeted() {
	d.Helper()
	d.Data("budgets", `{"tokens_per_day":1000000}`)
	d.begun("feed", "feed")
	d.start()
	d.Want(d.task.Write("result"), intents.OK)
	d.Want(d.Do(d.task.Intent("step.finish", catalog.StepFinish{
		TaskID: d.task.TaskID, Status: "done", MemoryKey: d.task.MemoryKey("result"),
		Usage: []catalog.Usage{{Agent: "executor", Model: "test:a", Calls: 2, InputTokens: 400, OutputTokens: 100}, {Agent: "executor", Model: "test:b", Calls: 1, InputTokens: 60, OutputTokens: 40}},
	})), intents.OK)
}

// budget puts other budgets.
func (d *dishonest) budget(value string) {
	d.Helper()
	d.accepted(routertest.Intent{By: d.Operator, Type: "admin.put", Args: catalog.AdminPut{Tenant: "default", Data: &catalog.Data{Key: "budgets", Value: json.RawMessage(value)}}})
}

// affords opens a task of the second step, decided by what was used.
func (d *dishonest) affords(b *intents.BudgetInput) int64 {
	d.Helper()
	var next *routertest.Task
	o := d.step(2, func(t *routertest.Task, a *catalog.Step) { next, d.deadline = t, a.Deadline })
	d.task = next
	return d.accepted(o, func(a *appended) { a.inputs.Budget = b })
}

// nextDay is a task of another day, after one that called twice and reported nothing.
func (d *dishonest) nextDay() {
	d.Helper()
	call := d.task.CallIntent("feed", `{}`)
	call.Ctx.Call = "3.0"
	d.accepted(call)
	d.Clock.Move(24 * time.Hour)
	d.claims(3)
	d.affords(&intents.BudgetInput{Day: 40000, User: 40000, Turn: 50600})
}

var budgetMisdeeds = []misdeed{
	{"budget-of-turn-spent", "budgeted", "step: no budget of the tenant is spent", "budget of this request is spent", func(d *dishonest) int64 {
		d.budget(`{"tokens_per_turn":600}`)
		return d.affords(&intents.BudgetInput{Day: 600, User: 600, Turn: 600})
	}},
	{"budget-of-user-spent", "budgeted", "step: no budget of the tenant is spent", "budget of this user and day is spent", func(d *dishonest) int64 {
		d.budget(`{"tokens_per_user_day":600,"tokens_per_turn":601}`)
		return d.affords(&intents.BudgetInput{Day: 600, User: 600, Turn: 600})
	}},
	{"budget-of-day-spent", "budgeted", "step: no budget of the tenant is spent", "budget of this tenant and day is spent", func(d *dishonest) int64 {
		d.budget(`{"tokens_per_day":600,"tokens_per_user_day":601}`)
		return d.affords(&intents.BudgetInput{Day: 600, User: 600, Turn: 600})
	}},
	{"budget-not-seen", "budgeted", "step: it was decided by what the records tell of use", "decided without", func(d *dishonest) int64 {
		return d.affords(nil)
	}},
	{"budget-understated", "budgeted", "step: it was decided by what the records tell of use", "other sums", func(d *dishonest) int64 {
		return d.affords(&intents.BudgetInput{Day: 600, User: 600})
	}},
	{"budget-overstated", "budgeted", "step: it was decided by what the records tell of use", "other sums", func(d *dishonest) int64 {
		return d.affords(&intents.BudgetInput{Day: 600, User: 601, Turn: 600})
	}},
	{"budget-without-lost-task", "budgeted", "step: it was decided by what the records tell of use", "other sums", func(d *dishonest) int64 {
		d.affords(&intents.BudgetInput{Day: 600, User: 600, Turn: 600})
		d.claims(2)
		return d.affords(&intents.BudgetInput{Day: 600, User: 600, Turn: 600})
	}},
}
