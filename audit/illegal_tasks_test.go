package audit_test

import (
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
)

var taskMisdeeds = []misdeed{
	{"second-key-of-task", "between-steps", "step: no task of the tenant has the id", "a task with this id exists", func(d *dishonest) int64 {
		return d.accepted(d.step(2, func(t *routertest.Task, a *catalog.Step) { t.TaskID, a.TaskID = d.done.TaskID, d.done.TaskID }))
	}},
	{"key-used-again", "between-steps", "step: no task has had the key", "used for another task", func(d *dishonest) int64 {
		return d.accepted(d.step(2, func(t *routertest.Task, _ *catalog.Step) { t.Key = d.done.Key }))
	}},
	{"key-of-key-set", "between-steps", "step: the key stands in no key set", "stands in the key set", func(d *dishonest) int64 {
		return d.accepted(d.step(2, func(t *routertest.Task, _ *catalog.Step) { t.Key = d.Manager }))
	}},
	{"key-not-possessed", "between-steps", "step: the key proves that it is possessed", "SIGNATURE_INVALID", func(d *dishonest) int64 {
		t := d.plan.NewTask(2)
		a := t.StepArgs()
		a.Step = 2
		a.Deadline = d.Clock.Now().Add(6 * time.Minute).Format(time.RFC3339) // after the proof
		return d.accepted(d.plan.StepIntent(a))
	}},
	{"task-for-too-long", "between-steps", "step: the deadline lies within the next hour", "next hour", func(d *dishonest) int64 {
		return d.accepted(d.step(2, func(_ *routertest.Task, a *catalog.Step) {
			a.Deadline = d.Clock.Now().Add(2 * time.Hour).Format(time.RFC3339)
		}))
	}},
	{"second-task-of-step", "running", "step: one live task for a step", "running", func(d *dishonest) int64 {
		return d.accepted(d.step(1, nil))
	}},
	{"step-skipped", "between-steps", "step: all that the step waits for is done", "next step", func(d *dishonest) int64 { return d.accepted(d.step(3, nil)) }},
	{"step-again", "between-steps", "step: the step is not done", "next step", func(d *dishonest) int64 { return d.accepted(d.step(1, nil)) }},
	{"step-not-planned", "running", "step: the plan has the step", "not the next step", func(d *dishonest) int64 {
		d.accepted(d.task.Intent("write_memory", catalog.WriteMemory{Label: "result", Data: []byte(`1`)}), func(a *appended) {
			a.result = catalog.WriteMemoryResult{Key: d.task.MemoryKey("result"), SizeBytes: 1, Validated: true}
		})
		d.accepted(d.task.Intent("step.finish", catalog.StepFinish{TaskID: d.task.TaskID, Status: "done", MemoryKey: d.task.MemoryKey("result")}))
		return d.accepted(d.step(7, nil))
	}},
	{"step-of-stale-revision", "replanned", "step: plan_digest is the current revision's", "current revision", func(d *dishonest) int64 {
		return d.accepted(d.step(2, func(_ *routertest.Task, a *catalog.Step) { a.PlanDigest = d.old }))
	}},
	{"step-by-another-user", "between-steps", "step: the plan is the actor's", "of this user", func(d *dishonest) int64 {
		o := d.step(2, nil)
		o.User = "ben"
		return d.accepted(o)
	}},
	{"step-of-another-tenant", "between-steps", "step: the plan is the tenant's", "no such plan", func(d *dishonest) int64 {
		o := d.step(2, nil)
		o.Tenant = "acme"
		return d.accepted(o)
	}},
	{"step-by-planner", "between-steps", "every intent: the key's role may sign the type", "may not sign", func(d *dishonest) int64 {
		o := d.step(2, nil)
		o.By = d.Planner
		return d.accepted(o)
	}},
	{"dead-task", "between-steps", "a task's intent: the task has not ended", "had ended", func(d *dishonest) int64 {
		d.task = d.done
		d.deadline = d.Clock.Now().Add(5 * time.Minute).Format(time.RFC3339)
		return d.accepted(d.done.CallIntent("feed", `{"late":true}`))
	}},
	{"task-of-cancelled-plan", "running", "a task's intent: the task has not ended", "cancelled", func(d *dishonest) int64 {
		d.accepted(d.plan.CancelIntent(d.Gateway))
		return d.accepted(d.task.CallIntent("feed", `{"late":true}`))
	}},
	{"task-of-claimed-plan", "running", "a task's intent: the task has not ended", "newer plan.claim", func(d *dishonest) int64 {
		d.accepted(d.plan.ClaimIntent(2))
		return d.accepted(d.task.CallIntent("feed", `{"late":true}`))
	}},
	{"task-of-revoked-user", "running", "a task's intent: the task has not ended", "grants were revoked", func(d *dishonest) int64 {
		before := intents.FormatTime(d.Clock.Now())
		d.accepted(routertest.Intent{By: d.Operator, Type: "grant.revoke", Args: catalog.GrantRevoke{Tenant: "default", Sub: "ana", Before: before}})
		d.Clock.Move(intents.Leeway + time.Second)
		return d.accepted(d.task.CallIntent("feed", `{"late":true}`))
	}},
	{"task-of-disabled-user", "running", "a task's intent: the task has not ended", "user was disabled", func(d *dishonest) int64 {
		for _, disabled := range []bool{true, false} {
			u := catalog.User{UserID: "ana", Roles: []string{"user"}, Disabled: disabled}
			d.accepted(routertest.Intent{By: d.Operator, Type: "admin.put", Args: catalog.AdminPut{Tenant: "default", User: &u}})
		}
		return d.accepted(d.task.CallIntent("feed", `{"late":true}`))
	}},
	{"once-again", "spent", "an intent of a plan: nothing that acts once is accepted again while it may have acted", "committed before", func(d *dishonest) int64 {
		o := d.task.CallIntent("pay", `{"n":1}`)
		o.Key = "again"
		return d.accepted(o, once)
	}},
	{"once-again-by-next-task", "called", "an intent of a plan: nothing that acts once is accepted again while it may have acted", "committed before", func(d *dishonest) int64 {
		d.claims(2)
		var next *routertest.Task
		d.accepted(d.step(1, func(t *routertest.Task, _ *catalog.Step) { next = t }))
		o := next.CallIntent("pay", `{"n":1}`)
		o.Key = "again"
		return d.accepted(o, once, func(a *appended) { a.inputs.Task.TaskID = next.TaskID })
	}},
	{"once-again-by-next-revision", "called", "an intent of a plan: nothing that acts once is accepted again while it may have acted", "committed before", func(d *dishonest) int64 {
		failed := d.finishing("failed")
		failed.Args = catalog.StepFinish{TaskID: d.task.TaskID, Status: "failed", Reason: "the rest"}
		d.accepted(failed, pays)
		_, d.plan.Digest = d.accept(d.revision(2, routertest.Steps(3, "pay")))
		d.plan.Revision = 2
		var next *routertest.Task
		d.accepted(d.step(3, func(t *routertest.Task, _ *catalog.Step) { next = t }))
		return d.accepted(next.CallIntent("pay", `{"n":1}`), once, func(a *appended) {
			a.inputs.Task.TaskID, a.inputs.Task.Revision, a.inputs.Task.Step = next.TaskID, 2, 3
		})
	}},
	{"occurrence-left-out", "called", "an intent of a plan: occurrence n has n equal intents before it", "1 equal intents", func(d *dishonest) int64 {
		o := d.task.CallIntent("pay", `{"n":1}`)
		o.Ctx.Occurrence = 2
		return d.accepted(o, once)
	}},
	{"held-by-nobody", "called", "step.finish: held is said where an intent of the step waits, or one of the task has waited", "no intent of this step waits", func(d *dishonest) int64 {
		return d.accepted(d.finishing("held"), pays)
	}},
	{"step-while-held", "waiting", "step: one live task for a step", "the step is held", func(d *dishonest) int64 {
		d.accepted(d.finishing("held"), pays)
		return d.accepted(d.step(1, nil))
	}},
	{"task-past-deadline", "running", "a task's intent: not after the task's deadline", "past its deadline", func(d *dishonest) int64 {
		d.Clock.Move(6 * time.Minute)
		return d.accepted(d.task.CallIntent("feed", `{"late":true}`))
	}},
	{"task-in-another-plan", "running", "a task's intent: the context is its step's", "context", func(d *dishonest) int64 {
		o := d.task.CallIntent("feed", `{}`)
		o.Ctx.PlanID = "plan_2"
		return d.accepted(o)
	}},
	{"task-in-another-session", "running", "a task's intent: the context is its step's", "context", func(d *dishonest) int64 {
		o := d.task.CallIntent("feed", `{}`)
		o.Ctx.SessionID = "S2"
		return d.accepted(o)
	}},
	{"task-in-another-step", "running", "a task's intent: the context is its step's", "context", func(d *dishonest) int64 {
		o := d.task.CallIntent("feed", `{}`)
		o.Ctx.Step = 2
		return d.accepted(o)
	}},
	{"task-in-an-ask", "running", "a task's intent: the context is its step's", "context", func(d *dishonest) int64 {
		o := d.task.CallIntent("feed", `{}`)
		o.Ctx.Ask = "1.0"
		return d.accepted(o)
	}},
	{"task-in-another-revision", "running", "a task's intent: the context is its step's", "context", func(d *dishonest) int64 {
		o := d.task.CallIntent("feed", `{}`)
		o.Ctx.Revision = 2
		return d.accepted(o)
	}},
	{"task-of-another-user", "running", "a task's intent: the task is the actor's", "another user", func(d *dishonest) int64 {
		o := d.task.CallIntent("feed", `{}`)
		o.User = "ben"
		return d.accepted(o)
	}},
	{"task-of-another-tenant", "running", "a task's intent: the task is the tenant's", "another user", func(d *dishonest) int64 {
		o := d.task.CallIntent("feed", `{}`)
		o.Tenant = "acme"
		return d.accepted(o)
	}},
	{"task-never-opened", "running", "every intent: its key is known", "KEY_UNKNOWN", func(d *dishonest) int64 {
		o := d.task.CallIntent("feed", `{}`)
		o.By = d.NewKey(intents.RoleTask)
		return d.accepted(o)
	}},
	{"finished-twice", "between-steps", "step.finish: the task has not ended", "ended", func(d *dishonest) int64 {
		return d.accepted(d.transition("step.finish", catalog.StepFinish{TaskID: d.done.TaskID, Status: "failed", Reason: "again"}))
	}},
	{"finished-by-another-user", "running", "step.finish: the task is the actor's", "task of this user", func(d *dishonest) int64 {
		o := d.transition("step.finish", catalog.StepFinish{TaskID: d.task.TaskID, Status: "failed", Reason: "no"})
		o.User = "ben"
		return d.accepted(o)
	}},
	{"done-by-manager", "running", "step.finish: a manager says failed and nothing else", "manager", func(d *dishonest) int64 {
		return d.accepted(d.transition("step.finish", catalog.StepFinish{TaskID: d.task.TaskID, Status: "insufficient", Reason: "no"}))
	}},
	{"done-without-result", "running", "step.finish: done names a memory that the step has written", "write_memory", func(d *dishonest) int64 {
		return d.accepted(d.task.Intent("step.finish", catalog.StepFinish{TaskID: d.task.TaskID, Status: "done", MemoryKey: d.task.MemoryKey("result")}))
	}},
}

// pays: the intent is of a task that may pay.
func pays(a *appended) { a.inputs.Task.Skills = []string{"pay"} }

// once is a call of the skill that acts once.
func once(a *appended) {
	a.decision.Effect, a.inputs.Task.Skills = string(catalog.Once), []string{"pay"}
	a.inputs.Skill = &intents.SkillInput{Name: "pay", Digest: intents.Digest([]byte("pay")), Effect: string(catalog.Once), Trusted: true, OpenWorld: intents.No}
}

// second has somebody approve the held intent as the second one, and releases it.
func second(change func(d *dishonest, o *routertest.Intent)) func(d *dishonest) int64 {
	return func(d *dishonest) int64 {
		var o routertest.Intent
		o.Roles = []string{"approver"}
		change(d, &o)
		position, by, yes := d.says(o)
		d.released(*d.held.Position, by, d.ben, yes)
		return position
	}
}

// afterwards has cleo approve the held intent after something has happened to ben's
// approval, and releases it anyway.
func afterwards(happens func(d *dishonest) routertest.Intent) func(d *dishonest) int64 {
	return func(d *dishonest) int64 {
		d.accepted(happens(d))
		_, by, cleo := d.says(routertest.Intent{User: "cleo", Roles: []string{"approver"}})
		return d.released(*d.held.Position, by, d.ben, cleo)
	}
}
