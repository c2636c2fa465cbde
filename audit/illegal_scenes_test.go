package audit_test

import (
	"slices"
	"testing"
	"testing/cryptotest"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
	"aob.dev/writ/state"
)

// scenes are honest logs, each written by a router as far as a point from which a
// dishonest one continues. Their keys are made from the seed alone.
func scenes() map[string]func(d *dishonest) {
	return map[string]func(d *dishonest){
		// A plan of an agent whose task runs.
		"agent": func(d *dishonest) { d.shop() },
		// The same, and calls of its agent wait for people.
		"agent-approved": func(d *dishonest) { d.careful() },
		// A planner's plan that may name an agent, and one whose step an agent carries out.
		"agent-offered":  func(d *dishonest) { d.offered() },
		"agent-stepping": func(d *dishonest) { d.stepping() },
		// A plan that has used tokens, of a tenant with budgets.
		"budgeted": func(d *dishonest) { d.budgeted() },
		// A call that waits for the one person of the tenant, who asked for it.
		"alone": func(d *dishonest) { d.alone() },
		// The same, and she has approved later calls, too: one was made.
		"standing": func(d *dishonest) { d.stands() },
		// A skill server that has failed, a call of it that was refused, and one that waits for people.
		"broken": func(d *dishonest) { d.broken() },
		// A plan of an agent whose task has asked two others.
		"asking": func(d *dishonest) { d.desk() },
		// Three agents that requests are routed to, and: a plan opened for routing, one after the user
		// was asked to clarify, one of an agent whose task runs, and one that has ended.
		"unrouted":   func(d *dishonest) { d.routing() },
		"clarifying": func(d *dishonest) { d.clarifying() },
		"routed":     func(d *dishonest) { d.routed() },
		"left":       func(d *dishonest) { d.left() },
		// The first of these, and the breaker of one of the agents is open.
		"diverted": func(d *dishonest) { d.diverted() },
		// A run of a workflow whose first node is done; one whose second node runs; and one that has ended.
		"run-begun":    func(d *dishonest) { d.running() },
		"node-running": func(d *dishonest) { d.nodeRunning() },
		"ran":          func(d *dishonest) { d.ran() },
		// The second of these, with a patch.
		"run-patched": func(d *dishonest) { d.patched() },
		// A plan of a remote agent whose task runs.
		"remote": func(d *dishonest) { d.help() },
		// A plan of an MCP client that has made two calls.
		"client": func(d *dishonest) { d.client() },
		// A question to people, and an edit of it.
		"questioned": func(d *dishonest) { d.questioned() },
		"edited":     func(d *dishonest) { d.edited() },
		// Two tenants, whose intents may come in a batch.
		"batched": func(d *dishonest) { d.acme() },
		// A plan that has ended, and whose texts an operator has erased.
		"erased": func(d *dishonest) { d.erased() },
		// A plan that has a driver, and texts that came beside its opening.
		"beside": func(d *dishonest) { d.beside() },
		// Schedules whose time has come.
		"scheduled": func(d *dishonest) { d.scheduled() },
		// A plan that has no driver yet.
		"opened": func(d *dishonest) {
			d.Pin("feed", catalog.Pure)
			d.plan = d.NewPlan("plan_1")
			d.Want(d.plan.Open(), intents.OK)
		},
		// A plan for a request that may be sent again.
		"requested": func(d *dishonest) {
			d.plan = d.NewPlan("plan_1")
			d.Want(d.Do(d.openRequest(d.plan, "S", catalog.RequestBody)), intents.OK)
		},
		// The same, and its end.
		"request-answered": func(d *dishonest) {
			scenes()["requested"](d)
			d.Want(d.plan.Claim(), intents.OK)
			d.Want(d.plan.Fail(), intents.OK)
		},
		// A plan that its planner has not written yet.
		"claimed": func(d *dishonest) {
			scenes()["opened"](d)
			d.Want(d.plan.Claim(), intents.OK)
		},
		// A plan without steps, that its planner has answered.
		"answered": func(d *dishonest) {
			scenes()["claimed"](d)
			d.Want(d.Do(d.answering(1, "These.")), intents.OK)
		},
		// A plan of three steps whose first is done.
		"between-steps": func(d *dishonest) {
			d.acme()
			d.begun("feed", "feed", "feed")
			d.done = d.plan.Started(1)
			d.done.Done()
		},
		// A plan of two steps whose first runs.
		"running": func(d *dishonest) {
			d.acme()
			d.begun("feed", "feed")
			d.start()
		},
		// A plan whose first revision failed.
		"replanning": func(d *dishonest) {
			d.begun("feed")
			d.old = d.plan.Digest
			d.start()
			d.Want(d.task.Finish("failed", "", "nothing there"), intents.OK)
		},
		// A plan whose second revision runs no step yet.
		"replanned": func(d *dishonest) {
			scenes()["replanning"](d)
			d.Want(d.plan.Plan(routertest.Steps(2, "feed")), intents.OK)
		},
		// A plan of six steps that run side by side, but for the last, which waits for the one
		// before it. Four run.
		"side-by-side": func(d *dishonest) {
			d.graph(6)
			for n := range catalog.MaxLive {
				d.task = d.plan.Started(n + 1)
			}
		},
		// A plan of three steps that run side by side, and one that waits: the first has failed,
		// the second runs, the others have not begun.
		"failed-beside": func(d *dishonest) {
			d.graph(4)
			failed := d.plan.Started(1)
			d.task = d.plan.Started(2)
			d.Want(failed.Finish("failed", "", "nothing there"), intents.OK)
		},
		// A plan that was closed before its step ran.
		"closed": func(d *dishonest) {
			d.begun("feed")
			d.Want(d.plan.Fail(), intents.OK)
		},
		// A plan that runs no step yet, whose intents have their arguments in a part of their own.
		"apart": func(d *dishonest) {
			d.begun("feed", "feed")
			d.Want(d.plan.Claim(), intents.OK)
		},
		// A plan of two steps whose first is done, in a log that asks for ids with their time.
		"timed": func(d *dishonest) {
			d.begun("feed", "feed")
			d.done = d.plan.Started(1)
			d.done.Done()
		},
		// A plan that was closed 48 hours ago, and another one whose step is to run.
		"long-closed": func(d *dishonest) { d.closedFor(state.PlanKept) },
		// The same a second earlier.
		"kept": func(d *dishonest) { d.closedFor(state.PlanKept - time.Second) },
		// A call with an effect, once, that waits for two people; ben has approved it.
		"held": func(d *dishonest) {
			d.acme()
			d.Pin("pay", catalog.Once)
			for _, u := range []catalog.User{
				{UserID: "ana", Roles: []string{"user", "approver"}}, {UserID: "dora", Roles: []string{"approver"}, Disabled: true}, {UserID: "frank", Roles: []string{"user"}},
			} {
				d.Want(d.Admin("admin.put", catalog.AdminPut{Tenant: "default", User: &u}), intents.OK)
			}
			d.Approval(`{"once":true,"count":2}`, "ben", "cleo")
			d.plan = d.Begun("plan_1", "pay")
			d.start()
			d.held = d.Want(d.task.Call("pay", `{"n":1}`), intents.ApprovalRequired)
			d.Clock.Move(time.Second)
			d.Want(d.Do(d.approves("ben")), intents.OK)
			d.ben = intents.Approval{UserID: "ben", At: intents.FormatTime(d.Clock.Now()), Roles: []string{"approver"}}
			d.Clock.Move(time.Second)
		},
		// The same, approved by both, released and done.
		"released": func(d *dishonest) {
			scenes()["held"](d)
			d.Want(d.Do(d.approves("cleo")), intents.OK)
			a, err := d.Router.Await(d.Context(), *d.held.Position)
			d.Must(err)
			d.Want(a, intents.OK)
		},
		// The same, turned down.
		"rejected": func(d *dishonest) {
			scenes()["held"](d)
			no := d.approves("cleo")
			no.Args = catalog.Approve{IntentID: d.held.IntentID, Decision: catalog.DecisionReject, Reason: "no"}
			d.Want(d.Do(no), intents.OK)
		},
		// A call whose outcome was unknown until an operator resolved it.
		"resolved": func(d *dishonest) {
			d.begun("feed")
			d.start()
			d.Bus.On("skill.call", routertest.Always(intents.Report{Status: intents.StatusIndetermined, Code: intents.Indeterminate, Reason: "cut off"}))
			d.unsure = d.Want(d.task.Call("feed", `{"n":1}`), intents.Indeterminate)
			d.Want(d.Admin("intent.resolve", catalog.IntentResolve{IntentID: d.unsure.IntentID, Status: "failed", Reason: "seen at the other end"}), intents.OK)
		},
		// A call with an effect, once, that needed no approval and is done.
		"spent": func(d *dishonest) {
			d.Pin("pay", catalog.Once)
			d.Data("approval", `{"once":false}`)
			d.plan = d.Begun("plan_1", "pay")
			d.start()
			d.Want(d.task.Call("pay", `{"n":1}`), intents.OK)
		},
		// The same in a plan of two steps, where later tasks of its step see the call.
		"called": func(d *dishonest) {
			d.Pin("pay", catalog.Once)
			d.Data("approval", `{"once":false}`)
			d.plan = d.Begun("plan_1", "pay", "pay")
			d.start()
			first := d.task.CallIntent("pay", `{"n":1}`)
			first.Ctx.Call = "1.0"
			d.Want(d.Do(first), intents.OK)
		},
		// A call whose outcome is unknown, and one that waits until it is known.
		"unsettled": func(d *dishonest) {
			d.Pin("pay", catalog.Once)
			d.Data("approval", `{"once":false}`)
			d.plan = d.Begun("plan_1", "pay")
			d.start()
			d.Bus.On("skill.call", routertest.Always(intents.Report{Status: intents.StatusIndetermined, Code: intents.Indeterminate, Reason: "cut off"}))
			d.unsure = d.Want(d.task.Call("pay", `{"n":1}`), intents.Indeterminate)
			d.held = d.Want(d.task.Call("pay", `{"n":2}`), intents.ApprovalRequired)
		},
		// A plan of three steps that run side by side: a call of the first waits for people, the
		// second is done, the third has failed.
		"held-beside": func(d *dishonest) {
			d.Pin("feed", catalog.Pure)
			d.Pin("pay", catalog.Once)
			d.Approval(`{"once":true}`, "ben")
			d.plan = d.NewPlan("plan_1")
			d.Want(d.plan.Open(), intents.OK)
			d.Want(d.plan.Claim(), intents.OK)
			steps := routertest.Steps(1, "pay", "feed", "feed")
			for i := range steps {
				steps[i].InputFromStep, steps[i].Parallel = 0, true
			}
			d.Want(d.plan.Plan(steps), intents.OK)
			held := d.plan.Started(1)
			d.held = d.Want(held.Call("pay", `{}`), intents.ApprovalRequired)
			d.Want(held.Finish("held", "", ""), intents.OK)
			d.plan.Started(2).Done()
			d.Want(d.plan.Started(3).Finish("failed", "", "nothing there"), intents.OK)
		},
		// A call that waits for people, whose task lives.
		"waiting": func(d *dishonest) { scenes()["held"](d) },
		// Users, an operator of less than all rights, a refused intent.
		"directory": func(d *dishonest) {
			d.acme()
			d.operator = d.AddOperator("default", "olga", "auditor")
			d.Want(d.Admin("admin.put", catalog.AdminPut{Tenant: "default", User: &catalog.User{UserID: "dora", Roles: []string{"user"}, Disabled: true}}), intents.OK)
			d.Want(d.Do(d.finds("first", "k")), intents.OK)
			wrong := d.finds("by another role", "wrong")
			wrong.By = d.Manager
			d.Want(d.Do(wrong), intents.KeyRole)
			d.Clock.Move(time.Minute)
		},
		// An agent that an operator of the tenant has stopped, who has an API key for others, too.
		"stopped": func(d *dishonest) { d.stopped() },
		// An operator whose key makes raw signatures, and an intent of hers.
		"raw": func(d *dishonest) { d.rawly() },
		// Ana's grants were revoked.
		"revoked": func(d *dishonest) {
			d.Want(d.Do(d.finds("before", "")), intents.OK)
			issued := d.Clock.Now().Unix()
			d.Clock.Move(10 * time.Second)
			d.Want(d.Admin("grant.revoke", catalog.GrantRevoke{Tenant: "default", Sub: "ana", Before: intents.FormatTime(d.Clock.Now())}), intents.OK)
			d.grant = d.finds("after", "")
			d.grant.Grant = func(g *intents.Grant) { g.IssuedAt = issued }
			next := d.NewKey(intents.RolePlanner)
			d.Want(d.Keys(func(s *intents.KeySet) { s.Keys = append(s.Keys, next.VerificationKey().ToJWK()) }), intents.OK)
			d.RevokeKey(d.Planner)
			d.operator = next
			d.Clock.Move(time.Second)
		},
	}
}

// play makes a scene. The same seed gives the same keys, grants and records.
func play(t *testing.T, scene string) *dishonest {
	t.Helper()
	cryptotest.SetGlobalRandom(t, 12)
	var begin []state.GenesisData
	if scene == "alone" || scene == "standing" {
		begin = append(begin, state.Alone("default", "ana"))
	}
	d := &dishonest{world: newWorld(t, begin...)}
	scenes()[scene](d)
	d.records = slice(d.Records())
	return d
}

// acme is another tenant.
func (d *dishonest) acme() {
	d.Helper()
	d.Want(d.Admin("admin.put", catalog.AdminPut{New: &catalog.Tenant{ID: "acme"}}), intents.OK)
}

func (d *dishonest) begun(skills ...string) {
	d.Helper()
	d.Pin("feed", catalog.Pure)
	d.plan = d.Begun("plan_1", skills...)
}

// graph is a plan of so many steps that wait for nothing, but for the last, which waits
// for the one before it.
func (d *dishonest) graph(n int) {
	d.Helper()
	d.Pin("feed", catalog.Pure)
	d.plan = d.NewPlan("plan_1")
	d.Want(d.plan.Open(), intents.OK)
	d.Want(d.plan.Claim(), intents.OK)
	steps := routertest.Steps(1, slices.Repeat([]string{"feed"}, n)...)
	for i := range steps {
		steps[i].InputFromStep, steps[i].Parallel = 0, i < n-1
	}
	d.Want(d.plan.Plan(steps), intents.OK)
}

// secondFails ends the task of the second step.
func (d *dishonest) secondFails() {
	d.Helper()
	d.accepted(d.task.Intent("step.finish", catalog.StepFinish{TaskID: d.task.TaskID, Status: "failed", Reason: "no"}))
}

// closedFor is a plan that was closed some time ago, with a task, and another one whose
// step is to run.
func (d *dishonest) closedFor(long time.Duration) {
	d.Helper()
	d.begun("feed")
	d.start()
	d.removed, d.done = d.plan, d.task
	d.Want(d.plan.Cancel(d.Gateway), intents.OK)
	d.Clock.Move(long)
	d.plan = d.Begun("plan_2", "feed")
}

func (d *dishonest) start() {
	d.Helper()
	d.deadline = d.Clock.Now().Add(5 * time.Minute).Format(time.RFC3339)
	d.task = d.plan.Started(1)
}

// finds is an intent that every user may submit.
func (d *dishonest) finds(query, key string) routertest.Intent {
	return routertest.Intent{By: d.Planner, Type: "skill.find", Args: catalog.SkillFind{Query: query}, Key: key}
}

// approves is somebody's approval of the held intent.
func (d *dishonest) approves(who string) routertest.Intent {
	return routertest.Intent{
		By: d.Gateway, Type: "hitl.approve", User: who, Roles: []string{"approver"}, Ctx: intents.Context{TurnID: "approval"},
		Args: catalog.Approve{IntentID: d.held.IntentID, Decision: catalog.DecisionApprove},
	}
}

// legally continues from each scene as an honest router would have: what is appended
// breaks no rule, so what an auditor finds in a misdeed is the misdeed.
func (d *dishonest) legally(scene string) {
	d.Helper()
	local := func(a catalog.AdminPut) {
		d.accepted(routertest.Intent{By: d.Operator, Type: "admin.put", Args: a})
	}
	switch scene {
	case "broken":
		d.continuesLegally()
	case "asking":
		d.asksLegally()
	case "unrouted", "clarifying", "diverted", "left":
		d.entersLegally(scene)
	case "run-begun":
		d.runsLegally()
	case "node-running":
		d.nodeRunsLegally()
	case "ran":
		d.repeats("ana", false)
	case "run-patched":
		d.patchesLegally()
	case "remote":
		d.helpsLegally()
	case "alone":
		_, by, ana := d.says(routertest.Intent{User: "ana", Roles: []string{"approver"}})
		d.released(*d.held.Position, by, ana)
	case "standing":
		d.accepted(d.again(`{"city":"oslo","n":3}`, 2), d.standing())
	case "questioned", "edited":
		d.answersLegally(scene)
	case "client":
		d.callsLegally()
	case "batched":
		d.inBatch("default", 0, 0, 3)
		d.inBatch("default", 1, 2, 3)
		d.inBatch("default", 3, 4, 3)
	case "erased":
		d.erasesLegally()
	case "beside":
		d.endsLegally()
	case "scheduled":
		d.fires("plan_1", hourly, onTheHour, d.next(time.Hour))
		d.fires("plan_2", oneTime, routertest.Began.Add(30*time.Minute))
		d.puts(hourly, time.Minute)
		d.accepted(routertest.Intent{By: d.Gateway, Type: "schedule.delete", Args: catalog.ScheduleDelete{ID: "hourly"}})
	case "opened":
		d.accepted(d.plan.ClaimIntent(1))
		d.accepted(d.revision(1, routertest.Steps(1, "feed")))
	case "between-steps":
		d.accepted(d.step(2, nil))
		d.accepted(d.plan.ClaimIntent(2))
		d.plan.Epoch = 2
		d.accepted(d.step(2, nil))
		d.accepted(d.closing("failed"))
	case "budgeted":
		d.affords(&intents.BudgetInput{Day: 600, User: 600, Turn: 600})
		d.claims(2) // a task without a report counts as one request
		d.affords(&intents.BudgetInput{Day: 10600, User: 10600, Turn: 10600})
		d.nextDay()
	case "timed":
		d.accepted(d.opens(d.id(intents.KindPlan, -intents.MaxIDAge)))
		d.accepted(d.opens(d.id(intents.KindPlan, intents.Leeway)))
		d.accepted(d.step(2, func(_ *routertest.Task, a *catalog.Step) { a.TaskID = d.id(intents.KindTask, -intents.MaxIDAge) }))
	case "kept":
		d.accepted(d.step(1, nil))
	case "long-closed":
		d.accepted(d.step(1, func(t *routertest.Task, _ *catalog.Step) { t.Key = d.done.Key }))
	case "running":
		d.accepted(d.task.CallIntent("feed", `{}`))
		key := d.task.MemoryKey("result")
		d.accepted(d.task.Intent("write_memory", catalog.WriteMemory{Label: "result", Data: []byte(`1`)}), func(a *appended) {
			a.result = catalog.WriteMemoryResult{Key: key, SizeBytes: 1, Validated: true}
			a.outcome["facts"] = []intents.ReportedEvent{routertest.Event("memory.written", `{"key":"`+key+`"}`)}
		})
		d.accepted(d.task.Intent("step.finish", catalog.StepFinish{TaskID: d.task.TaskID, Status: "done", MemoryKey: key}))
		d.accepted(d.step(2, nil))
		d.accepted(d.plan.CancelIntent(d.Gateway))
	case "replanning":
		d.accepted(d.revision(2, routertest.Steps(2, "feed", "feed")))
		d.accepted(d.closing("failed"))
	case "replanned":
		d.accepted(d.step(2, nil))
	case "side-by-side":
		d.accepted(d.task.Intent("step.finish", catalog.StepFinish{TaskID: d.task.TaskID, Status: "failed", Reason: "no"}))
	case "failed-beside":
		d.secondFails()
		steps := routertest.Steps(5, "feed", "feed")
		steps[1].After, steps[1].InputFromStep = []int{5}, 0
		_, d.plan.Digest = d.accept(d.revision(2, steps))
		d.plan.Revision = 2
		d.accepted(d.step(5, nil))
	case "apart":
		d.accepted(d.closing("failed"))
	case "held":
		_, by, cleo := d.says(routertest.Intent{User: "cleo", Roles: []string{"approver"}})
		d.released(*d.held.Position, by, d.ben, cleo)
	case "unsettled":
		d.resolves("failed")
		d.released(*d.held.Position, "")
		d.accepted(d.task.CallIntent("pay", `{"n":3}`), once)
	case "held-beside":
		d.revises(routertest.Steps(4, "feed"), 1)
		d.ends(*d.held.Position, intents.Failed, intents.Cancelled)
		d.accepted(d.step(4, nil))
	case "spent":
		d.accepted(d.task.CallIntent("pay", `{"n":2}`), once)
		again := d.task.CallIntent("pay", `{"n":1}`)
		again.Ctx.Occurrence = 1
		d.accepted(again, once)
	case "called":
		again := d.task.CallIntent("pay", `{"n":1}`)
		again.Ctx.Call, again.Ctx.Occurrence = "1.1", 1
		d.accepted(again, once)
		d.claims(2) // the step continues
		d.accepted(d.step(1, nil))
	case "waiting":
		d.accepted(d.finishing("held"), pays)
		_, by, cleo := d.says(routertest.Intent{User: "cleo", Roles: []string{"approver"}})
		d.released(*d.held.Position, by, d.ben, cleo)
		d.accepted(d.step(1, nil)) // under the same driver
	case "directory":
		d.accepted(d.nextKeySet(func(*intents.KeySet) {}))
		d.operatorBecomes("admin")
		d.accepted(routertest.Intent{
			By: d.operator, User: "olga", Tenant: "default", Roles: []string{"admin"}, Type: "admin.put",
			Args: catalog.AdminPut{User: &catalog.User{UserID: "ana", Roles: []string{"user"}}},
		})
		d.control(map[string]any{"policy_digest": d.policyDigest(), "policy_revision": 3})
		d.accepted(d.finds("second", "l"))
	case "stopped":
		d.stopsLegally()
	case "revoked":
		o := d.finds("with another grant", "")
		o.By = d.operator
		d.Clock.Move(intents.Leeway + time.Second)
		d.accepted(o)
	default:
		local(catalog.AdminPut{New: &catalog.Tenant{ID: "globex"}})
		local(catalog.AdminPut{Tenant: "globex", User: &catalog.User{UserID: "gus", Roles: []string{"user"}}})
	}
}
