package audit_test

import (
	"slices"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
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
