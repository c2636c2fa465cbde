package audit_test

import (
	"encoding/json"
	"slices"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
)

// misdeed is what a dishonest router does at the end of an honest log.
type misdeed struct {
	name, scene string
	rule        string // that it breaks
	finding     string // the auditor's finding
	do          func(d *dishonest) (bad int64)
}

// misdeeds are all of them. Each breaks one rule of docs/spec/state.md, at one record.
var misdeeds = slices.Concat(turnMisdeeds, planMisdeeds, graphMisdeeds, idMisdeeds, taskMisdeeds, holdMisdeeds, directoryMisdeeds, rawMisdeeds, recordMisdeeds, agentMisdeeds, askMisdeeds, unknownOutcomeMisdeeds, dropMisdeeds, scheduleMisdeeds, registryMisdeeds, agentStepMisdeeds, budgetMisdeeds, clientMisdeeds, breakerMisdeeds, remoteMisdeeds, routingMisdeeds, runMisdeeds, patchMisdeeds, approvalMisdeeds, batchMisdeeds, erasureMisdeeds, transientMisdeeds)

// step is the intent that opens another task for a step of the plan, after a change
// that its proof of possession covers.
func (d *dishonest) step(n int, change func(t *routertest.Task, a *catalog.Step)) routertest.Intent {
	d.Helper()
	t := d.plan.NewTask(n)
	a := t.StepArgs()
	if change != nil {
		change(t, &a)
	}
	a.JWK = t.Key.VerificationKey().ToJWK()
	return d.plan.StepIntent(t.Proved(a))
}

// transition is an intent of the manager about the plan.
func (d *dishonest) transition(typ string, args any) routertest.Intent {
	return routertest.Intent{By: d.Manager, Type: typ, Args: args, Ctx: intents.Context{PlanID: d.plan.ID}}
}

func (d *dishonest) revision(n int, steps []catalog.PlanStep) routertest.Intent {
	o := d.transition("plan", catalog.Plan{PlanID: d.plan.ID, Epoch: 1, Revision: n, Steps: steps})
	o.By = d.Planner
	return o
}

// answering is a revision with an answer.
func (d *dishonest) answering(n int, answer string, steps ...catalog.PlanStep) routertest.Intent {
	o := d.revision(n, nil)
	o.Args = catalog.Plan{PlanID: d.plan.ID, Epoch: 1, Revision: n, Steps: append([]catalog.PlanStep{}, steps...), Answer: answer}
	return o
}

// id of a plan or task made some time before or after now.
func (d *dishonest) id(kind string, after time.Duration) string {
	return intents.TimedID(kind, d.Clock.Now().Add(after), "_x")
}

// opens is plan.open with an id.
func (d *dishonest) opens(id string) routertest.Intent {
	p := *d.plan
	p.ID = id
	return p.OpenIntent()
}

// begins opens a task with an id for the second step.
func (d *dishonest) begins(id string) int64 {
	return d.accepted(d.step(2, func(_ *routertest.Task, a *catalog.Step) { a.TaskID = id }))
}

// claims makes another driver claim the plan.
func (d *dishonest) claims(epoch int) {
	d.Helper()
	d.accepted(d.plan.ClaimIntent(epoch))
	d.plan.Epoch = epoch
}

// finishing ends the task without a result.
func (d *dishonest) finishing(status string) routertest.Intent {
	return d.task.Intent("step.finish", catalog.StepFinish{TaskID: d.task.TaskID, Status: status})
}

func (d *dishonest) closing(status string) routertest.Intent {
	c := catalog.PlanClose{PlanID: d.plan.ID, Epoch: d.plan.Epoch, Status: status, Response: "These."}
	if status == "failed" {
		c.Response, c.Failure = "", &catalog.Failure{Reason: "infeasible", CompletedSteps: []int{}}
	}
	return d.transition("plan.close", c)
}

// The times in the ids of plans and tasks.
const (
	planIDTime = "plan.open: the id carries its time, at most an hour old and 5 s ahead"
	taskIDTime = "step: the id carries its time, at most an hour old and 5 s ahead"
)

// openRequest is plan.open for one request, in a session.
func (d *dishonest) openRequest(p *routertest.Plan, session, kind string) routertest.Intent {
	o := p.OpenIntent()
	o.Args = catalog.PlanOpen{PlanID: p.ID, Task: "Which ten?", Request: &catalog.Request{Digest: intents.Digest([]byte("which")), Kind: kind}}
	o.Ctx.SessionID = session
	return o
}

const oneRequest = "plan.open: its request has opened no plan"

var turnMisdeeds = []misdeed{
	{"session-taken-twice", "opened", "plan.open: its session has no open turn", "open turn", func(d *dishonest) int64 {
		o := d.NewPlan("plan_2").OpenIntent()
		o.Ctx.SessionID = routertest.Session
		return d.accepted(o)
	}},
	{"request-opened-twice", "requested", oneRequest, "opened a plan", func(d *dishonest) int64 {
		return d.accepted(d.openRequest(d.NewPlan("plan_2"), "S2", catalog.RequestBody))
	}},
	{"request-of-the-day", "request-answered", oneRequest, "opened a plan", func(d *dishonest) int64 {
		d.Clock.Move(24*time.Hour - time.Second)
		return d.accepted(d.openRequest(d.NewPlan("plan_2"), "S2", catalog.RequestKey))
	}},
	{"request-sent-again", "request-answered", oneRequest, "opened a plan", func(d *dishonest) int64 {
		d.Clock.Move(10*time.Minute - time.Second)
		return d.accepted(d.openRequest(d.NewPlan("plan_2"), "S2", catalog.RequestRetry))
	}},
}

var idMisdeeds = []misdeed{
	{"plan-id-untimed", "timed", planIDTime, "must be plan_", func(d *dishonest) int64 { return d.accepted(d.opens("plan_2")) }},
	{"plan-id-too-old", "timed", planIDTime, "more than an hour ago", func(d *dishonest) int64 {
		return d.accepted(d.opens(d.id(intents.KindPlan, -intents.MaxIDAge-time.Millisecond)))
	}},
	{"plan-id-ahead", "timed", planIDTime, "in the future", func(d *dishonest) int64 {
		return d.accepted(d.opens(d.id(intents.KindPlan, intents.Leeway+time.Millisecond)))
	}},
	{"task-id-untimed", "timed", taskIDTime, "must be task_", func(d *dishonest) int64 { return d.begins("task_2") }},
	{"task-id-too-old", "timed", taskIDTime, "more than an hour ago", func(d *dishonest) int64 {
		return d.begins(d.id(intents.KindTask, -intents.MaxIDAge-time.Millisecond))
	}},
	{"task-id-ahead", "timed", taskIDTime, "in the future", func(d *dishonest) int64 {
		return d.begins(d.id(intents.KindTask, intents.Leeway+time.Millisecond))
	}},
	{"key-used-too-soon", "kept", "step: no task has had the key", "used for another task", func(d *dishonest) int64 {
		return d.accepted(d.step(1, func(t *routertest.Task, _ *catalog.Step) { t.Key = d.done.Key }))
	}},
	{"plan-long-closed", "long-closed", "plan.claim: the plan is there", "no such plan", func(d *dishonest) int64 {
		return d.accepted(d.removed.ClaimIntent(2))
	}},
	{"task-long-ended", "long-closed", "every intent: its key is known", "KEY_UNKNOWN", func(d *dishonest) int64 {
		return d.accepted(d.done.CallIntent("feed", `{}`))
	}},
}

var planMisdeeds = []misdeed{
	{"plan-opened-twice", "opened", "plan.open: no plan of the tenant has the id", "exists", func(d *dishonest) int64 {
		o := d.plan.OpenIntent()
		o.Key = "again"
		return d.accepted(o)
	}},
	{"claim-of-no-plan", "opened", "plan.claim: the plan is there", "no such plan", func(d *dishonest) int64 {
		o := d.transition("plan.claim", catalog.PlanClaim{PlanID: "plan_2", Epoch: 1, Driver: "d1"})
		o.Ctx.PlanID = "plan_2"
		return d.accepted(o)
	}},
	{"opened-in-another-plan", "opened", "plan.open: the context names no other plan", "another plan", func(d *dishonest) int64 {
		o := d.NewPlan("plan_2").OpenIntent()
		o.Ctx.PlanID = d.plan.ID
		return d.accepted(o)
	}},
	{"claim-in-another-plan", "opened", "plan.claim: the context names no other plan", "another plan", func(d *dishonest) int64 {
		o := d.plan.ClaimIntent(1)
		o.Ctx.PlanID = "plan_2"
		return d.accepted(o)
	}},
	{"claim-left-out", "opened", "plan.claim: epoch is the plan's plus one", "epoch", func(d *dishonest) int64 {
		return d.accepted(d.plan.ClaimIntent(2))
	}},
	{"plan-without-driver", "opened", "plan: a driver has claimed the plan", "epoch", func(d *dishonest) int64 {
		return d.accepted(d.revision(1, routertest.Steps(1, "feed")))
	}},
	{"claim-of-old-epoch", "between-steps", "plan.claim: epoch is the plan's plus one", "epoch", func(d *dishonest) int64 {
		o := d.plan.ClaimIntent(1)
		o.Key = "again"
		return d.accepted(o)
	}},
	{"step-of-old-driver", "between-steps", "step: epoch is the plan's", "epoch", func(d *dishonest) int64 {
		d.accepted(d.plan.ClaimIntent(2))
		return d.accepted(d.step(2, nil))
	}},
	{"claim-by-another-user", "between-steps", "plan.claim: the plan is the actor's", "of this user", func(d *dishonest) int64 {
		o := d.plan.ClaimIntent(2)
		o.User = "ben"
		return d.accepted(o)
	}},
	{"revision-while-executing", "between-steps", "plan: the plan is planning or replanning", "executing", func(d *dishonest) int64 {
		return d.accepted(d.revision(2, routertest.Steps(2, "feed")))
	}},
	{"revision-left-out", "replanning", "plan: revision is the plan's plus one", "revision", func(d *dishonest) int64 {
		return d.accepted(d.revision(3, routertest.Steps(1, "feed")))
	}},
	{"steps-doubled", "replanning", "plan: step numbers run on", "step numbers", func(d *dishonest) int64 {
		return d.accepted(d.revision(2, append(routertest.Steps(2, "feed"), routertest.Steps(2, "feed")...)))
	}},
	{"steps-out-of-order", "replanning", "plan: step numbers run on", "step numbers", func(d *dishonest) int64 {
		steps := routertest.Steps(2, "feed", "feed")
		steps[1].InputFromStep = 0
		slices.Reverse(steps)
		return d.accepted(d.revision(2, steps))
	}},
	{"input-from-later-step", "replanning", "plan: input comes from an earlier step", "earlier step", func(d *dishonest) int64 {
		steps := routertest.Steps(2, "feed", "feed")
		steps[0].InputFromStep = 3
		return d.accepted(d.revision(2, steps))
	}},
	{"answer-after-a-failure", "replanning", "plan: a plan has steps, or its first revision has an answer", "at least one step", func(d *dishonest) int64 {
		return d.accepted(d.answering(2, "These."))
	}},
	{"answer-with-steps", "claimed", "plan: a plan has steps, or its first revision has an answer", "answered when it is closed", func(d *dishonest) int64 {
		return d.accepted(d.answering(1, "These.", routertest.Steps(1, "feed")...))
	}},
	{"neither-steps-nor-answer", "claimed", "plan: a plan has steps, or its first revision has an answer", "has an answer", func(d *dishonest) int64 {
		return d.accepted(d.answering(1, ""))
	}},
	{"answer-changed", "answered", "plan.close: a plan without steps is closed with its answer", "the answer that its planner gave", func(d *dishonest) int64 {
		o := d.closing("complete")
		o.Args = catalog.PlanClose{PlanID: d.plan.ID, Epoch: 1, Status: "complete", Response: "Those."}
		return d.accepted(o)
	}},
	{"step-while-replanning", "replanning", "step: the plan is executing", "replanning", func(d *dishonest) int64 {
		return d.accepted(d.step(1, nil))
	}},
	{"closed-too-early", "between-steps", "plan.close: a plan is complete when all its steps are done", "steps are done", func(d *dishonest) int64 {
		return d.accepted(d.closing("complete"))
	}},
	{"closed-while-running", "running", "plan.close: a plan is complete when all its steps are done", "steps are done", func(d *dishonest) int64 {
		return d.accepted(d.closing("complete"))
	}},
	{"closed-by-another-user", "between-steps", "plan.close: the plan is the actor's", "of this user", func(d *dishonest) int64 {
		o := d.closing("failed")
		o.User = "ben"
		return d.accepted(o)
	}},
	{"closed-twice", "closed", "plan.close: the plan has not ended", "failed", func(d *dishonest) int64 {
		o := d.closing("failed")
		o.Key = "again"
		return d.accepted(o)
	}},
	{"cancel-of-closed-plan", "closed", "cancel: the plan has not ended", "failed", func(d *dishonest) int64 {
		return d.accepted(d.plan.CancelIntent(d.Gateway))
	}},
	{"claim-of-closed-plan", "closed", "plan.claim: the plan has not ended", "failed", func(d *dishonest) int64 {
		return d.accepted(d.plan.ClaimIntent(2))
	}},
	{"revision-of-closed-plan", "closed", "plan: the plan has not ended", "failed", func(d *dishonest) int64 {
		return d.accepted(d.revision(2, routertest.Steps(1, "feed")))
	}},
	{"step-of-closed-plan", "closed", "step: the plan has not ended", "failed", func(d *dishonest) int64 {
		return d.accepted(d.step(1, nil))
	}},
}

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

// holds appends an intent of the task as held.
func (d *dishonest) holds(terms intents.HoldTerms) int64 {
	d.Helper()
	return d.accepted(d.task.CallIntent("feed", `{}`), func(a *appended) {
		a.decision.Verdict, a.decision.Code, a.decision.Hold, a.outcome = intents.Hold, intents.ApprovalRequired, &terms, nil
	})
}

var holdMisdeeds = []misdeed{
	{"held-intent-done", "held", "outcome: a held intent is done only after its release", "without release", func(d *dishonest) int64 {
		return d.ends(*d.held.Position, intents.Done, intents.OK)
	}},
	{"released-without-approval", "held", "release: the approvals satisfy every rule of the hold", "without the approvals", func(d *dishonest) int64 {
		return d.released(*d.held.Position, d.lastApproval())
	}},
	{"released-by-one-of-two", "held", "release: the approvals satisfy every rule of the hold", "without the approvals", func(d *dishonest) int64 {
		return d.released(*d.held.Position, d.lastApproval(), d.ben)
	}},
	{"released-by-one-twice", "held", "release: each person counts once", "without the approvals", func(d *dishonest) int64 {
		return d.released(*d.held.Position, d.lastApproval(), d.ben, d.ben)
	}},
	{"released-by-nobody", "held", "release: every approval was given", "nobody gave", func(d *dishonest) int64 {
		cleo := intents.Approval{UserID: "cleo", At: d.ben.At, Roles: []string{"approver"}}
		return d.released(*d.held.Position, d.lastApproval(), d.ben, cleo)
	}},
	{"released-by-another-intent", "held", "release: by names the last approval", "last approval", func(d *dishonest) int64 {
		_, _, cleo := d.says(routertest.Intent{User: "cleo", Roles: []string{"approver"}})
		return d.released(*d.held.Position, d.lastApproval(), d.ben, cleo)
	}},
	{"released-late", "held", "release: before the deadline", "after its deadline", func(d *dishonest) int64 {
		_, by, cleo := d.says(routertest.Intent{User: "cleo", Roles: []string{"approver"}})
		d.Clock.Move(intents.MaxHold)
		return d.released(*d.held.Position, by, d.ben, cleo)
	}},
	{"approved-by-requester", "held", "hitl.approve: by one whom a rule of the hold accepts", "may approve", second(func(_ *dishonest, o *routertest.Intent) { o.User = "ana" })},
	{"approved-by-disabled-user", "held", "every intent: a disabled user has no roles", "RBAC_FORBIDDEN", second(func(_ *dishonest, o *routertest.Intent) { o.User = "dora" })},
	{"approved-without-capability", "held", "every intent: the actor's roles give the type's capability", "RBAC_FORBIDDEN", second(func(_ *dishonest, o *routertest.Intent) {
		o.User, o.Roles = "frank", []string{"user"}
	})},
	{"approved-with-lost-role", "held", "every intent: roles are those of the grant that the directory gives too", "RBAC_FORBIDDEN", second(func(_ *dishonest, o *routertest.Intent) { o.User = "frank" })},
	{"approved-by-unnamed-approver", "held", "hitl.approve: by one whom a rule of the hold accepts", "may approve", second(func(_ *dishonest, o *routertest.Intent) { o.User = "hugo" })},
	{"approved-twice", "held", "hitl.approve: each person approves once", "already", second(func(_ *dishonest, o *routertest.Intent) { o.User, o.Key = "ben", "again" })},
	{"approved-late", "held", "hitl.approve: before the deadline", "after its deadline", second(func(d *dishonest, o *routertest.Intent) {
		d.Clock.Move(intents.MaxHold)
		o.User = "cleo"
	})},
	{"approved-under-old-grant", "held", "hitl.approve: under a grant of the last five minutes", "approver was there", second(func(d *dishonest, o *routertest.Intent) {
		d.Clock.Move(6 * time.Minute)
		at := d.Clock.Now().Add(-6 * time.Minute).Unix()
		o.User, o.Grant = "cleo", func(g *intents.Grant) { g.IssuedAt, g.Expires = at, at+14*60 }
	})},
	{"approved-in-another-tenant", "held", "hitl.approve: the held intent is the tenant's", "no held intent of this tenant", second(func(_ *dishonest, o *routertest.Intent) {
		o.User, o.Tenant = "cleo", "acme"
	})},
	{"approved-by-task", "held", "every intent: the key's role may sign the type", "may not sign", second(func(d *dishonest, o *routertest.Intent) {
		o.User, o.By = "cleo", d.Planner
	})},
	{"approval-of-no-hold", "held", "hitl.approve: the intent is held", "no held intent", func(d *dishonest) int64 {
		o := routertest.Intent{User: "cleo", Roles: []string{"approver"}, Args: catalog.Approve{IntentID: d.plan.Digest, Decision: catalog.DecisionApprove}}
		position, _, _ := d.says(o)
		return position
	}},
	{"release-of-no-hold", "held", "release: the intent is held", "not", func(d *dishonest) int64 {
		open, id := d.accept(d.finds("never held", ""), func(a *appended) { a.outcome = nil })
		return d.released(open, id, d.ben)
	}},
	{"released-twice", "released", "release: the intent is held", "not open", func(d *dishonest) int64 {
		return d.released(*d.held.Position, d.lastApproval(), d.ben)
	}},
	{"approved-after-release", "released", "hitl.approve: the intent is held", "no held intent", func(d *dishonest) int64 {
		o := routertest.Intent{User: "cleo", Roles: []string{"approver"}, Key: "again"}
		position, _, _ := d.says(o)
		return position
	}},
	{"released-after-no", "rejected", "release: the intent is held", "not open", func(d *dishonest) int64 {
		return d.released(*d.held.Position, d.lastApproval(), d.ben)
	}},
	{"released-by-revoked-approver", "held", "release: every approval counts by then", "revoked before", afterwards(func(d *dishonest) routertest.Intent {
		before := intents.FormatTime(d.Clock.Now())
		return routertest.Intent{By: d.Operator, Type: "grant.revoke", Args: catalog.GrantRevoke{Tenant: "default", Sub: "ben", Before: before}}
	})},
	{"released-by-former-approver", "held", "release: every approval counts by then", "directory does not give", afterwards(func(d *dishonest) routertest.Intent {
		u := catalog.User{UserID: "ben", Roles: []string{"user"}}
		return routertest.Intent{By: d.Operator, Type: "admin.put", Args: catalog.AdminPut{Tenant: "default", User: &u}}
	})},
	{"held-for-nothing", "running", "hold: it has a rule, and a deadline within a day", "what for", func(d *dishonest) int64 {
		return d.holds(intents.HoldTerms{Deadline: intents.FormatTime(d.Clock.Now().Add(time.Hour))})
	}},
	{"held-for-too-long", "running", "hold: it has a rule, and a deadline within a day", "more than a day", func(d *dishonest) int64 {
		return d.holds(intents.HoldTerms{
			Deadline: intents.FormatTime(d.Clock.Now().Add(intents.MaxHold + time.Second)),
			Rules:    []intents.HoldRule{{ID: "x", Reason: "x", Approvers: []string{"ben"}}},
		})
	}},
	{"rejected-by-nobody", "held", "outcome: rejected only where somebody said so", "nobody said so", func(d *dishonest) int64 {
		return d.ends(*d.held.Position, intents.Failed, intents.ApprovalRejected)
	}},
	{"expired-early", "held", "outcome: expired only from the deadline on", "before its deadline", func(d *dishonest) int64 {
		return d.ends(*d.held.Position, intents.Failed, intents.ApprovalExpired)
	}},
	{"task-of-held-intent", "waiting", "a task's intent: the task has not ended", "its task had ended: step.finish", func(d *dishonest) int64 {
		d.accepted(d.finishing("held"), pays)
		return d.accepted(d.task.CallIntent("feed", `{}`), func(a *appended) {
			a.decision.Effect, a.inputs.Task.Skills = string(catalog.Pure), []string{"pay"}
		})
	}},
}

// lastApproval is the intent_id of the last hitl.approve of the scene.
func (d *dishonest) lastApproval() (id string) {
	d.Helper()
	for _, r := range d.Records() {
		envelope, err := intents.ReadSigned(r.Parts[storage.PartEnvelope])
		if err != nil {
			continue
		}
		if u, err := envelope.Open(); err == nil && u.Body().Intent.Type == "hitl.approve" {
			id = u.ID()
		}
	}
	return id
}

var directoryMisdeeds = []misdeed{
	{"grant-revoked", "revoked", "every intent: its grant was not revoked", "grant was revoked", func(d *dishonest) int64 {
		d.grant.By = d.operator // a planner's key of now
		return d.accepted(d.grant)
	}},
	{"key-revoked", "revoked", "every intent: its key was not revoked", "KEY_REVOKED", func(d *dishonest) int64 {
		d.Clock.Move(intents.Leeway + time.Second) // the grants of now are good
		return d.accepted(d.finds("by a revoked key", ""))
	}},
	{"grant-expired", "directory", "every intent: its grant is the actor's, of the session and turn, for this work, and of now", "GRANT_INVALID", func(d *dishonest) int64 {
		return d.accepted(d.granted(func(g *intents.Grant) { g.IssuedAt, g.Expires = g.IssuedAt-800, g.IssuedAt-10 }))
	}},
	{"grant-of-another-user", "directory", "every intent: its grant is the actor's, of the session and turn, for this work, and of now", "RBAC_FORBIDDEN", func(d *dishonest) int64 {
		return d.accepted(d.granted(func(g *intents.Grant) { g.Subject = "ben" }))
	}},
	{"grant-of-another-session", "directory", "every intent: its grant is the actor's, of the session and turn, for this work, and of now", "GRANT_INVALID", func(d *dishonest) int64 {
		return d.accepted(d.granted(func(g *intents.Grant) { g.Session = "S2" }))
	}},
	{"grant-for-other-work", "directory", "every intent: its grant is the actor's, of the session and turn, for this work, and of now", "GRANT_INVALID", func(d *dishonest) int64 {
		return d.accepted(d.granted(func(g *intents.Grant) { g.For = "plan:plan_2" }))
	}},
	{"api-key-not-there", "directory", "every intent: the directory has the API key that its grant came through", "RBAC_FORBIDDEN", func(d *dishonest) int64 {
		return d.accepted(d.granted(through("gone")))
	}},
	{"grant-by-manager", "directory", "every intent: a gateway's key has signed its grant", "GRANT_INVALID", func(d *dishonest) int64 {
		o := d.finds("by my own grant", "")
		o.IssuedBy = &d.Manager
		return d.accepted(o)
	}},
	{"key-set-left-out", "directory", "key.put: the key set is the successor of the one in force", "successor", func(d *dishonest) int64 {
		return d.accepted(d.keySet(2))
	}},
	{"key-set-again", "directory", "key.put: the key set is the successor of the one in force", "successor", func(d *dishonest) int64 {
		return d.accepted(d.keySet(0))
	}},
	{"role-by-auditor", "directory", "every intent: the actor's roles give the type's capability", "RBAC_FORBIDDEN", func(d *dishonest) int64 {
		o := routertest.Intent{By: d.operator, User: "olga", Tenant: "default", Roles: []string{"auditor"}, Type: "admin.put"}
		o.Args = catalog.AdminPut{User: &catalog.User{UserID: "olga", Roles: []string{"admin"}}}
		return d.accepted(o)
	}},
	{"role-by-gateway", "directory", "every intent: the key's role may sign the type", "may not sign", func(d *dishonest) int64 {
		o := routertest.Intent{By: d.Gateway, Type: "admin.put", Args: catalog.AdminPut{User: &catalog.User{UserID: "ana", Roles: []string{"admin"}}}}
		return d.accepted(o)
	}},
	{"tenant-by-its-operator", "directory", "an operator's intent: only operators of system name another tenant", "RBAC_FORBIDDEN", func(d *dishonest) int64 {
		d.operatorBecomes("admin")
		o := routertest.Intent{By: d.operator, User: "olga", Tenant: "default", Roles: []string{"admin"}, Type: "admin.put"}
		o.Args = catalog.AdminPut{Tenant: "acme", User: &catalog.User{UserID: "olga", Roles: []string{"admin"}}}
		return d.accepted(o)
	}},
	{"sources-of-another", "running", "a task's intent: facts.task.sources are those of its plan and of what it names", "other sources", func(d *dishonest) int64 {
		return d.accepted(d.task.CallIntent("feed", `{"n":7}`), func(a *appended) {
			a.inputs.Task.Sources = []intents.Source{{Kind: intents.SourceServer, Name: "other", Trusted: true}}
		})
	}},
	{"source-left-out", "running", "a task's intent: its outcome leaves out no source that it has read", "leaves out whose content", func(d *dishonest) int64 {
		of := d.accepted(d.task.CallIntent("feed", `{"n":7}`), func(a *appended) { a.outcome = nil })
		at, _ := d.now()
		return d.add(storage.KindOutcome, at, map[string]any{
			storage.PartOutcome: map[string]any{"of": of, "attempt": 1, "status": "done", "code": "OK", "duration_ms": 0}, storage.PartResult: catalog.SkillCallResult{Output: json.RawMessage(`1`)},
		})
	}},
	{"tenant-twice", "directory", "admin.put: no tenant has the id", "exists", func(d *dishonest) int64 {
		return d.accepted(routertest.Intent{By: d.Operator, Type: "admin.put", Args: catalog.AdminPut{New: &catalog.Tenant{ID: "acme"}}})
	}},
	{"no-such-tenant", "directory", "admin.put: the tenant is there", "no such tenant", func(d *dishonest) int64 {
		return d.accepted(routertest.Intent{By: d.Operator, Type: "admin.put", Args: catalog.AdminPut{Tenant: "globex", User: &catalog.User{UserID: "ana", Roles: []string{"user"}}}})
	}},
	{"skill-of-system-by-gateway", "directory", "skill.approve: a gateway signs it for no user of system", "key of an operator", func(d *dishonest) int64 {
		o := routertest.Intent{By: d.Gateway, User: "local", Tenant: "system", Roles: []string{"admin"}, Type: "skill.approve", Ctx: intents.Context{TurnID: "turn_skill"}}
		o.Args = catalog.SkillApprove{Tenant: "acme", Skill: "crm.feed", Digest: intents.Digest(nil), Effect: catalog.Pure}
		return d.accepted(o)
	}},
	{"no-such-operator", "directory", "an operator's intent: the directory has the user", "RBAC_FORBIDDEN", func(d *dishonest) int64 {
		key := d.NewKey(intents.RoleOperator)
		k := key.VerificationKey()
		k.Subject, k.Tenant = "nobody", "default"
		d.accepted(d.nextKeySet(func(s *intents.KeySet) { s.Keys = append(s.Keys, k.ToJWK()) }))
		o := routertest.Intent{By: key, User: "nobody", Tenant: "default", Roles: []string{"admin"}, Type: "admin.put"}
		o.Args = catalog.AdminPut{User: &catalog.User{UserID: "nobody", Roles: []string{"admin"}}}
		return d.accepted(o)
	}},
	{"knowledge-without-capability", "directory", "every intent: the actor's roles give the type's capability", "RBAC_FORBIDDEN", func(d *dishonest) int64 {
		return d.accepted(routertest.Intent{By: d.Gateway, Type: "kb.index", Ctx: intents.Context{TurnID: "turn_kb"}, Args: catalog.KBIndex{
			Title: "Ours", Data: json.RawMessage(`"For all."`), MediaType: "text/plain", Scope: catalog.KnowledgeOfTenant,
		}})
	}},
	{"disabled-user", "directory", "every intent: a disabled user has no roles", "RBAC_FORBIDDEN", func(d *dishonest) int64 {
		o := d.finds("still here", "")
		o.User = "dora"
		return d.accepted(o)
	}},
	{"unknown-tenant", "directory", "every intent: the directory has the tenant", "RBAC_FORBIDDEN", func(d *dishonest) int64 {
		o := d.finds("from nowhere", "")
		o.Tenant = "globex"
		return d.accepted(o)
	}},
	{"roles-beyond-grant", "directory", "every intent: roles are those of the grant that the directory gives too", "roles", func(d *dishonest) int64 {
		return d.accepted(d.finds("as admin", ""), func(a *appended) { a.inputs.Roles = []string{"user", "admin"} })
	}},
	{"api-key-twice", "directory", "admin.put: of the API keys of a tenant each has its own id", "has this id", func(d *dishonest) int64 {
		key := func(text string) routertest.Intent {
			k := catalog.APIKey{ID: "k2", Hash: intents.Digest([]byte(text)), UserID: "ana", MaxRoles: []string{"user"}}
			return routertest.Intent{By: d.Operator, Type: "admin.put", Args: catalog.AdminPut{Tenant: "default", APIKey: &k}}
		}
		d.accepted(key("one"))
		return d.accepted(key("other"))
	}},
	{"revoked-nowhere", "directory", "grant.revoke: the tenant is there", "no such tenant", func(d *dishonest) int64 {
		before := intents.FormatTime(d.Clock.Now())
		return d.accepted(routertest.Intent{By: d.Operator, Type: "grant.revoke", Args: catalog.GrantRevoke{Tenant: "globex", Sub: "ana", Before: before}})
	}},
	{"resolved-twice", "resolved", "intent.resolve: nobody knows how the intent ended", "indeterminate", func(d *dishonest) int64 {
		return d.accepted(routertest.Intent{By: d.Operator, Type: "intent.resolve", Args: catalog.IntentResolve{IntentID: d.unsure.IntentID, Status: "done", Reason: "after all"}})
	}},
	{"resolved-though-known", "between-steps", "intent.resolve: nobody knows how the intent ended", "indeterminate", func(d *dishonest) int64 {
		return d.accepted(routertest.Intent{By: d.Operator, Type: "intent.resolve", Args: catalog.IntentResolve{IntentID: d.plan.Digest, Status: "failed", Reason: "no"}})
	}},
	{"revoked-ahead", "directory", "grant.revoke: before is not in the future", "future", func(d *dishonest) int64 {
		before := intents.FormatTime(d.Clock.Now().Add(time.Hour))
		return d.accepted(routertest.Intent{By: d.Operator, Type: "grant.revoke", Args: catalog.GrantRevoke{Tenant: "default", Sub: "ana", Before: before}})
	}},
}

// granted is an intent with a changed grant.
func (d *dishonest) granted(change func(*intents.Grant)) routertest.Intent {
	o := d.finds("granted", "")
	o.Grant = change
	return o
}

// keySet puts a key set that is so many versions after the one in force, which
// it names as the one before.
func (d *dishonest) keySet(ahead int64) routertest.Intent {
	return d.nextKeySet(func(s *intents.KeySet) { s.Version += ahead - 1 })
}

// nextKeySet is key.put of the key set in force, changed.
func (d *dishonest) nextKeySet(change func(*intents.KeySet)) routertest.Intent {
	d.Helper()
	jwks := d.Dir.JWKS()
	set := intents.KeySet{Version: jwks.Version + 1, Prev: intents.Digest([]byte(jwks.KeySet)), Keys: slices.Clone(jwks.Keys)}
	change(&set)
	token, err := intents.SignKeySet(d.Root, set)
	d.Must(err)
	return routertest.Intent{By: d.Operator, Type: "key.put", Args: catalog.KeyPut{KeySet: token}}
}

// operatorBecomes gives the scene's operator a role.
func (d *dishonest) operatorBecomes(role string) {
	d.Helper()
	d.accepted(routertest.Intent{By: d.Operator, Type: "admin.put", Args: catalog.AdminPut{Tenant: "default", User: &catalog.User{UserID: "olga", Roles: []string{role}}}})
}

var recordMisdeeds = []misdeed{
	{"outcome-without-decision", "directory", "outcome: an intent was accepted", "no open intent", func(d *dishonest) int64 {
		return d.ends(d.records.Next()-1, intents.Done, intents.OK)
	}},
	{"outcome-twice", "released", "outcome: the intent's first", "no open intent", func(d *dishonest) int64 {
		return d.ends(*d.held.Position, intents.Done, intents.OK)
	}},
	{"takeover-of-ended-intent", "released", "takeover: the intent is open", "not open", func(d *dishonest) int64 {
		at, _ := d.now()
		return d.add(storage.KindTakeover, at, map[string]any{storage.PartTakeover: map[string]any{"of": *d.held.Position}})
	}},
	{"key-taken", "directory", "every intent: its idempotency key is free", "a second intent", func(d *dishonest) int64 {
		return d.accepted(d.finds("second", "k"))
	}},
	{"key-misnamed", "directory", "every intent: decision.key is the intent's", "another idempotency key", func(d *dishonest) int64 {
		return d.accepted(d.finds("second", "k"), func(a *appended) { a.decision.Key = "00000000000000000000000000000000" })
	}},
	{"key-of-another", "directory", "every intent: decision.key is the intent's", "the intents name another", func(d *dishonest) int64 {
		return d.accepted(d.finds("second", "m"), func(a *appended) {
			a.decision.Key = storage.IntentKey(routertest.KeySecret, "default", "ana", "skill.find", "k").String()
		})
	}},
	{"key-missing", "directory", "every intent: decision.key is the intent's", "no idempotency key", func(d *dishonest) int64 {
		return d.accepted(d.finds("second", "m"), func(a *appended) { a.decision.Key = "" })
	}},
	{"summary-of-another-intent", "apart", "every intent: its summary follows from it", "summary says something else", func(d *dishonest) int64 {
		other := d.closing("failed")
		other.Args = catalog.PlanClose{PlanID: "plan_2", Epoch: d.plan.Epoch, Status: "failed", Failure: &catalog.Failure{Reason: "infeasible", CompletedSteps: []int{}}}
		return d.accepted(d.closing("failed"), d.summarised(other))
	}},
	{"summary-with-texts", "apart", "every intent: its summary follows from it", "summary says something else", func(d *dishonest) int64 {
		keep := d.summarised(d.closing("failed"))
		return d.accepted(d.closing("failed"), func(a *appended) {
			keep(a)
			a.summary.Args = json.RawMessage(`{"epoch":2,"failure":{"completed_steps":[],"reason":"infeasible"},"plan_id":"` + d.plan.ID + `","status":"failed"}`)
		})
	}},
	{"summary-left-out", "apart", "every intent: its summary follows from it", "summary says something else", func(d *dishonest) int64 {
		return d.accepted(d.closing("failed"), func(a *appended) { a.silent = true })
	}},
	{"decided-after-record", "directory", "every intent: facts.now is not after the record's time", "another time", func(d *dishonest) int64 {
		return d.accepted(d.finds("later", ""), func(a *appended) { a.inputs.Now = intents.FormatTime(d.Clock.Now().Add(time.Second)) })
	}},
	{"decided-before-issued", "directory", "every intent: issued_at is not after facts.now", "before it was issued", func(d *dishonest) int64 {
		o := d.finds("earlier", "")
		o.At = d.Clock.Now().Add(time.Minute)
		return d.accepted(o)
	}},
	{"decided-too-late", "directory", "every intent: facts.now is within ttl_sec of issued_at", "after its ttl_sec", func(d *dishonest) int64 {
		o := d.finds("late", "")
		o.At = d.Clock.Now().Add(-2 * time.Minute)
		return d.accepted(o)
	}},
	{"decided-for-another-log", "directory", "every intent: its audience is the log", "SIGNATURE_INVALID", func(d *dishonest) int64 {
		o := d.finds("elsewhere", "")
		o.Audience = "writ/" + d.Planner.KID
		return d.accepted(o)
	}},
	{"sent-elsewhere", "directory", "every intent: it is sent where the catalog says", "another executor", func(d *dishonest) int64 {
		o := routertest.Intent{By: d.Operator, Type: "admin.put", Args: catalog.AdminPut{Tenant: "default", User: &catalog.User{UserID: "gil", Roles: []string{"user"}}}}
		return d.accepted(o, func(a *appended) { a.decision.Executor = "python" }) // what the router carries out is the same in every catalog
	}},
	{"decided-on-the-future", "directory", "every intent: decision.directory is before its record", "come after it", func(d *dishonest) int64 {
		return d.accepted(d.finds("seen", ""), func(a *appended) { a.decision.Directory = d.records.Next() + 1 })
	}},
	{"rules-after-genesis", "directory", "control: the rules of a log are those of its genesis", "are those of its genesis", func(d *dishonest) int64 {
		return d.control(map[string]any{"rules": 1})
	}},
	{"rules-nobody-knows", "directory", "control: a verifier knows the rules of the genesis", "by rules 1 alone", func(d *dishonest) int64 {
		var c state.Control
		d.Must(json.Unmarshal(d.records[0].Parts[storage.PartControl], &c))
		c.Rules = 99
		r, err := storage.RecordOf(storage.KindControl, d.records[0].At, c)
		d.Must(err)
		d.records[0] = r
		return 0
	}},
	{"genesis-twice", "directory", "control: one genesis", "second genesis", func(d *dishonest) int64 {
		at, _ := d.now()
		r := storage.NewRecord(storage.KindControl, at, d.records[0].Parts)
		r.Position = d.records.Next()
		d.records = append(d.records, r)
		return r.Position
	}},
	{"policy-not-in-force", "directory", "every intent: the policy that decided is in force", "which is not in force", func(d *dishonest) int64 {
		return d.accepted(d.finds("otherwise", ""), func(a *appended) { a.decision.PolicyDigest = intents.Digest([]byte("another policy")) })
	}},
	{"policy-decides-before-its-record", "directory", "every intent: the policy that decided is in force", "which is not in force", func(d *dishonest) int64 {
		other := intents.Digest([]byte("another policy"))
		at := d.accepted(d.finds("otherwise", ""), func(a *appended) { a.decision.PolicyDigest = other })
		d.control(map[string]any{"policy_digest": other})
		return at
	}},
	{"policy-taken-back", "directory", "control: policy revisions only increase", "after revision", func(d *dishonest) int64 {
		d.control(map[string]any{"policy_digest": d.policyDigest(), "policy_revision": 3})
		return d.control(map[string]any{"policy_digest": d.policyDigest(), "policy_revision": 2})
	}},
}
