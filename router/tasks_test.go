package router_test

import (
	"testing"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
)

// A task's intent stays within its own task, step, plan and user.
func TestTaskScope(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	w.Pin("feed", catalog.Pure)
	w.Pin("other", catalog.Pure)
	p := w.Begun("p1", "feed", "other")
	task := p.Started(1)
	foreign := w.Begun("p2", "other").Started(1)
	for _, c := range []struct {
		name, pointer string
		change        func(*routertest.Intent)
	}{
		{"another task", "/context/task_id", func(o *routertest.Intent) { o.Ctx.TaskID = foreign.TaskID }},
		{"no task", "/context/task_id", func(o *routertest.Intent) { o.Ctx.TaskID = "" }},
		{"another step", "/context/step", func(o *routertest.Intent) { o.Ctx.Step = 2 }},
		{"an ask", "/context/ask", func(o *routertest.Intent) { o.Ctx.Ask = "1.0" }},
		{"another revision", "/context/step", func(o *routertest.Intent) { o.Ctx.Revision = 2 }},
		{"another plan", "/context/step", func(o *routertest.Intent) { o.Ctx.PlanID = routertest.PlanID("p2") }},
		{"another session", "/context/session_id", func(o *routertest.Intent) { o.Ctx.SessionID = "S2" }},
		{"another turn", "/context/session_id", func(o *routertest.Intent) { o.Ctx.TurnID = "T2" }},
		{"another user", "/actor", func(o *routertest.Intent) { o.User = "bob" }},
		{"another tenant", "/actor", func(o *routertest.Intent) { o.Tenant = "system" }},
		{"a skill of another step", "/intent/args/skill", func(o *routertest.Intent) { o.Args = catalog.SkillCall{Skill: "other"} }},
		{"loads a skill of another step", "/intent/args/skill", func(o *routertest.Intent) { o.Type, o.Args = "skill.load", catalog.SkillLoad{Skill: "other"} }},
		{"finishes another task", "/intent/args/task_id", func(o *routertest.Intent) {
			o.Type, o.Args = "step.finish", catalog.StepFinish{TaskID: foreign.TaskID, Status: "failed", Reason: "x"}
		}},
	} {
		o := task.CallIntent("feed", `{}`)
		c.change(&o)
		if a := w.Do(o); a.Code != intents.TaskScope || a.Pointer != c.pointer {
			t.Errorf("%s: %s at %s: %s", c.name, a.Code, a.Pointer, a.Reason)
		}
	}
	w.Want(task.Call("feed", `{}`), intents.OK)
}

// A task cannot open tasks, plan, close or approve: its key cannot.
func TestTaskKeyIsNoAgent(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	task := started(w, catalog.Pure)
	next := task.NewTask(1)
	for typ, args := range map[string]any{
		"step": next.StepArgs(), "plan": catalog.Plan{PlanID: routertest.PlanID("p1"), Epoch: 1, Revision: 2, Steps: routertest.Steps(1, "feed")},
		"plan.claim": catalog.PlanClaim{PlanID: routertest.PlanID("p1"), Epoch: 2, Driver: "d"}, "plan.open": catalog.PlanOpen{PlanID: routertest.PlanID("p3"), Task: "t"},
		"cancel": catalog.Cancel{PlanID: routertest.PlanID("p1")}, "soul.get": catalog.SoulGet{},
		"skill.approve": catalog.SkillApprove{Skill: "x", Digest: intents.Digest(nil), Effect: catalog.Pure},
	} {
		if a := w.Do(task.Intent(typ, args)); a.Code != intents.KeyRole {
			t.Errorf("%s: %s", typ, a.Code)
		}
	}
}

// The task's key is dead after every end, and the refusal says so.
func TestTaskEnds(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(w *routertest.World, task *routertest.Task)
	}{
		{"done", func(_ *routertest.World, task *routertest.Task) { task.Done() }},
		{"insufficient", func(w *routertest.World, task *routertest.Task) {
			w.Want(task.Finish("insufficient", "", "no rows"), intents.OK)
		}},
		{"deadline", func(w *routertest.World, _ *routertest.Task) { w.Clock.Move(5*time.Minute + time.Millisecond) }},
		{"newer claim", func(w *routertest.World, task *routertest.Task) { w.Want(task.Claim(), intents.OK) }},
		{"cancel", func(w *routertest.World, task *routertest.Task) { w.Want(task.Cancel(w.Gateway), intents.OK) }},
		{"plan closed", func(w *routertest.World, task *routertest.Task) { w.Want(task.Fail(), intents.OK) }},
		{"the manager says failed", func(w *routertest.World, task *routertest.Task) {
			o := task.ClaimIntent(0)
			o.Type, o.Args = "step.finish", catalog.StepFinish{TaskID: task.TaskID, Status: "failed", Reason: "lost"}
			w.OK(o)
		}},
		{"grants revoked", func(w *routertest.World, _ *routertest.Task) {
			w.Want(w.Admin("grant.revoke", catalog.GrantRevoke{Tenant: "default", Sub: "ana", Before: "2026-11-20T09:00:00Z"}), intents.OK)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := routertest.New(t, routertest.Options{})
			task := started(w, catalog.Pure)
			call := w.Sign(task.CallIntent("feed", `{"first":true}`))
			w.Want(w.Send(call), intents.OK)
			c.end(w, task)
			w.Want(task.Call("feed", `{"second":true}`), intents.KeyRevoked)
			w.Want(task.Finish("failed", "", "late"), intents.KeyRevoked)
			if c.name != "deadline" { // by then the intent itself has expired
				if a := w.Want(w.Send(call), intents.OK); !a.Replayed {
					t.Error("the duplicate is not replayed")
				}
			}
		})
	}
}

// No leeway on deadlines.
func TestTaskDeadlineHasNoLeeway(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	task := started(w, catalog.Pure)
	w.Clock.Move(5 * time.Minute)
	w.Want(task.Call("feed", `{}`), intents.OK)
	w.Clock.Move(time.Millisecond)
	w.Want(task.Call("feed", `{"late":true}`), intents.KeyRevoked)
}

// done must name a result that was written in this step; the manager may only report failed.
func TestFinish(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	w.Pin("feed", catalog.Pure)
	p := w.Begun("p1", "feed", "feed")
	t1 := p.Started(1)
	a := w.Want(t1.Finish("done", t1.MemoryKey("nothing"), ""), intents.MalformedArgs)
	if a.Pointer != "/intent/args/memory_key" {
		t.Errorf("pointer %s", a.Pointer)
	}
	manager := t1.ClaimIntent(0)
	manager.Type, manager.Args = "step.finish", catalog.StepFinish{TaskID: t1.TaskID, Status: "insufficient", Reason: "x"}
	w.Want(w.Do(manager), intents.MalformedArgs)
	manager.User, manager.Ctx.PlanID, manager.Args = "bob", "", catalog.StepFinish{TaskID: t1.TaskID, Status: "failed", Reason: "x"}
	w.Want(w.Do(manager), intents.TaskScope)
	k1 := t1.Done()
	t2 := p.Started(2)
	w.Want(t2.Finish("done", k1, ""), intents.MalformedArgs)
	t2.Done()
	w.Want(p.Complete(), intents.OK)
}

// A task reads its step's input and what it wrote itself, and nothing else.
func TestTaskReadsMemory(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	w.Pin("feed", catalog.Pure)
	p := w.NewPlan("p1")
	w.Want(p.Open(), intents.OK)
	w.Want(p.Claim(), intents.OK)
	steps := routertest.Steps(1, "feed", "feed", "feed")
	steps[2].InputFromStep = 1
	w.Want(p.Plan(steps), intents.OK)
	k1 := p.Started(1).Done()
	k2 := p.Started(2).Done()
	t3 := p.Started(3)
	read := func(key string) *intents.Answer { return w.Do(t3.Intent("read_memory", catalog.ReadMemory{Key: key})) }
	w.Want(read(k1), intents.OK)
	w.Want(read(k2), intents.TaskScope)
	w.Want(read(t3.MemoryKey("draft")), intents.TaskScope)
	w.Want(t3.Write("draft"), intents.OK)
	w.Want(read(t3.MemoryKey("draft")), intents.OK)
	w.Want(read("default:S:task_9:other"), intents.TaskScope)
	// A step without input_from_step reads no earlier result.
	q := w.Begun("p2", "feed")
	q1 := q.Started(1)
	w.Want(w.Do(q1.Intent("read_memory", catalog.ReadMemory{Key: k1})), intents.TaskScope)
}

// A task finds only the skills of its step among the tenant's pins.
func TestTaskFindsItsSkills(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	w.Pin("other", catalog.Pure)
	task := started(w, catalog.Pure)
	w.OK(task.Intent("skill.find", catalog.SkillFind{Query: "all"}))
	if pins := w.Bus.Calls("skill.find")[0].Ticket.Pins; len(pins) != 1 || pins[0].Skill != "feed" {
		t.Errorf("%+v", pins)
	}
}

// An intent under a standing grant reads the plan that the grant is for and no
// other, though its context names the right one.
func TestStandingGrantReadsNoOtherPlan(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	w.Begun("p1", "feed")
	w.Begun("p2", "feed")
	work := "plan:" + routertest.PlanID("p1")
	read := func(work, typ string, args any) *intents.Answer {
		return w.Do(routertest.Intent{
			By: w.Manager, Type: typ, Args: args, Ctx: intents.Context{PlanID: routertest.PlanID("p1")},
			Grant: func(g *intents.Grant) { g.For = work },
		})
	}
	w.Want(read(work, "plan.get", catalog.PlanGet{PlanID: routertest.PlanID("p1")}), intents.DispatchUnavailable)
	w.Want(read(work, "plan.get", catalog.PlanGet{PlanID: routertest.PlanID("p2")}), intents.TaskScope)
	w.Want(read("", "plan.get", catalog.PlanGet{PlanID: routertest.PlanID("p2")}), intents.DispatchUnavailable)
}
