package audit_test

import (
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
)

const (
	waitsForKnown = "an intent of a plan: while nobody knows what became of a call of its skill it waits, and nowhere else"
	dropsWaiting  = "plan: a step that is dropped stays otherwise, and is not done"
)

// unknownOutcomeMisdeeds do not wait for what became of a call, or wait for nothing.
var unknownOutcomeMisdeeds = []misdeed{
	{"sent-while-unknown", "unsettled", waitsForKnown, "earlier call of its skill: true", func(d *dishonest) int64 {
		return d.accepted(d.task.CallIntent("pay", `{"n":3}`), once)
	}},
	{"sent-beside-late-call", "spent", waitsForKnown, "earlier call of its skill: true", func(d *dishonest) int64 {
		d.accepted(d.task.CallIntent("pay", `{"n":2}`), once, func(a *appended) { a.outcome = nil })
		d.claims(2)
		var next *routertest.Task
		d.accepted(d.step(1, func(t *routertest.Task, _ *catalog.Step) { next = t }))
		return d.accepted(next.CallIntent("pay", `{"n":3}`), once, func(a *appended) { a.inputs.Task.TaskID = next.TaskID })
	}},
	{"held-though-known", "spent", waitsForKnown, "earlier call of its skill: false", func(d *dishonest) int64 {
		return d.accepted(d.task.CallIntent("pay", `{"n":2}`), once, func(a *appended) {
			a.decision.Verdict, a.decision.Code, a.outcome = intents.Hold, intents.ApprovalRequired, nil
			a.decision.Hold = &intents.HoldTerms{Deadline: intents.FormatTime(d.Clock.Now().Add(intents.DefaultHold)), Rules: []intents.HoldRule{{ID: intents.RuleUnknownOutcome, Reason: "it waits"}}}
		})
	}},
	{"released-while-unknown", "unsettled", "release: what the intent waited for is known", "released although nobody knows", func(d *dishonest) int64 {
		return d.released(*d.held.Position, "")
	}},
	{"released-by-no-intent", "held", "release: by names the last approval", "last approval", func(d *dishonest) int64 {
		_, _, cleo := d.says(routertest.Intent{User: "cleo", Roles: []string{"approver"}})
		return d.released(*d.held.Position, "", d.ben, cleo)
	}},
}

// dropMisdeeds drop steps that do not wait.
var dropMisdeeds = []misdeed{
	{"dropped-though-done", "held-beside", dropsWaiting, "only a step can be dropped", func(d *dishonest) int64 {
		return d.revises(routertest.Steps(4, "feed"), 2)
	}},
	{"dropped-though-replaced", "held-beside", dropsWaiting, "only a step can be dropped", func(d *dishonest) int64 {
		return d.revises(routertest.Steps(4, "feed"), 3)
	}},
	{"after-dropped-step", "held-beside", "plan: a step waits for earlier steps", "earlier step", func(d *dishonest) int64 {
		steps := routertest.Steps(4, "feed")
		steps[0].After = []int{1}
		return d.revises(steps, 1)
	}},
}

// revises appends the second revision of the plan, which drops steps.
func (d *dishonest) revises(steps []catalog.PlanStep, drop ...int) int64 {
	d.Helper()
	o := d.revision(2, nil)
	o.Args = catalog.Plan{PlanID: d.plan.ID, Epoch: 1, Revision: 2, Steps: steps, Drop: drop}
	position, id := d.accept(o)
	d.plan.Digest, d.plan.Revision = id, 2
	return position
}

// resolves appends an operator's result for the call whose outcome was unknown.
func (d *dishonest) resolves(status string) {
	d.Helper()
	d.accepted(routertest.Intent{By: d.Operator, Type: "intent.resolve", Args: catalog.IntentResolve{IntentID: d.unsure.IntentID, Status: status, Reason: "seen"}})
}
