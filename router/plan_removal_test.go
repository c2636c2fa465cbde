package router_test

import (
	"testing"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
	"aob.dev/writ/state"
)

// TestIDsCarryTheirTime: the ids of new plans and tasks have their time of creation, at most an
// hour ago and at most the leeway ahead.
func TestIDsCarryTheirTime(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	w.Pin("feed", catalog.Pure)
	w.Clock.Move(24 * time.Hour)
	p := w.Begun("p1", "feed")
	open := func(id string) *intents.Answer {
		q := *p
		q.ID = id
		return q.Open()
	}
	begin := func(id string) *intents.Answer {
		task := p.NewTask(1)
		task.TaskID = id
		return p.Do(p.StepIntent(task.StepArgs()))
	}
	id := func(kind string, after time.Duration) string {
		return intents.TimedID(kind, w.Clock.Now().Add(after), after.String()[:1])
	}
	refused := func(a *intents.Answer, pointer string) {
		t.Helper()
		if w.Want(a, intents.MalformedArgs); a.Pointer != pointer || a.Reason == "" {
			t.Errorf("at %s: %s", a.Pointer, a.Reason)
		}
	}
	for _, bad := range []string{"p1", "plan_1", id(intents.KindTask, 0), id(intents.KindPlan, -time.Hour-time.Millisecond), id(intents.KindPlan, intents.Leeway+time.Millisecond)} {
		refused(open(bad), "/intent/args/plan_id")
	}
	for _, bad := range []string{"t1", "task_1", id(intents.KindPlan, 0), id(intents.KindTask, -time.Hour-time.Millisecond), id(intents.KindTask, intents.Leeway+time.Millisecond)} {
		refused(begin(bad), "/intent/args/task_id")
	}
	w.Want(open(id(intents.KindPlan, -time.Hour)), intents.OK)
	w.Want(open(id(intents.KindPlan, intents.Leeway)), intents.OK)
	w.Want(begin(id(intents.KindTask, -time.Hour)), intents.OK)
}

// TestReleasedPlanHasAnOldID: people may take a day to approve a plan. The age of its id was judged
// when it was held.
func TestReleasedPlanHasAnOldID(t *testing.T) {
	w := rules(t, `{"id": "ext.ours", "reason": "We want to know.", "approvers": ["ben"]} if input.intent.type == "plan.open"`)
	p := w.NewPlan("p1")
	x := releaseWorld{w, nil, w.Want(p.Open(), intents.ApprovalRequired)}
	w.Clock.Move(intents.MaxHold - time.Minute)
	if got := x.state(x.says("ben", catalog.DecisionApprove)); got.State != catalog.ApprovalReleased {
		t.Errorf("%+v", got)
	}
	w.Want(x.outcome(), intents.OK)
	again := p.OpenIntent()
	again.Key = "again"
	w.Want(w.Do(again), intents.MalformedArgs) // its id is too old by now
	w.Want(p.Claim(), intents.OK)
}

// TestLongClosedPlan: a removed plan does not exist for anybody. Its documents and the records of
// its intents are read as before.
func TestLongClosedPlan(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	bob := w.AddOperator("default", "bob", "admin")
	task := started(w, catalog.Once)
	p := task.Plan
	w.Bus.On("skill.call", routertest.Always(routertest.Done(catalog.SkillCallResult{Output: []byte(`"anas-reply"`)})))
	call := w.Want(task.Call("feed", `{"name":"anas-name"}`), intents.OK)
	w.Want(p.Cancel(w.Gateway), intents.OK)
	closed := p.View()
	closed.IntentHistory = nil
	w.Bus.On("plan.get", routertest.Always(routertest.Done(catalog.PlanGetResult{Plan: closed})))
	read := func(w *routertest.World, typ string, args any, plan string) *intents.Answer {
		return w.Do(routertest.Intent{By: w.Manager, Type: typ, Args: args, Ctx: intents.Context{PlanID: plan}})
	}
	w.Want(read(w, "plan.get", catalog.PlanGet{PlanID: p.ID}, p.ID), intents.OK)
	w.Clock.Move(state.PlanKept)
	w.Want(read(w, "plan.get", catalog.PlanGet{PlanID: p.ID}, ""), intents.OK)
	if held := w.Router.Counts().Stats; held != (state.Stats{}) {
		t.Errorf("still there: %+v", held)
	}
	left := func(w *routertest.World) {
		t.Helper()
		w.Bus.On("plan.get", routertest.Always(routertest.Done(catalog.PlanGetResult{Plan: closed})))
		w.Bus.On("memory.query", routertest.Always(routertest.Done(catalog.MemoryQueryResult{Hits: []catalog.MemoryHit{}, By: "words"})))
		on := *task
		on.Plan = p.On(w)
		w.Want(on.Call("feed", `{"n":2}`), intents.KeyUnknown)
		w.Want(on.Finish("failed", "", "late"), intents.KeyUnknown)
		w.Want(on.Claim(), intents.TaskScope)
		w.Want(on.Cancel(w.Gateway), intents.TaskScope)
		w.Want(on.Read(task.MemoryKey("result")), intents.TaskScope)
		again := on.OpenIntent()
		again.Key = "again"
		w.Want(w.Do(again), intents.MalformedArgs)
		w.Want(w.Do(routertest.Intent{By: bob, User: "bob", Tenant: "default", Type: "cancel", Args: catalog.Cancel{PlanID: p.ID}}), intents.TaskScope)
		w.Want(read(w, "plan.get", catalog.PlanGet{PlanID: p.ID}, p.ID), intents.TaskScope)
		w.Want(read(w, "plan.get", catalog.PlanGet{PlanID: p.ID}, ""), intents.OK)
		w.Want(read(w, "memory.query", catalog.MemoryQuery{Text: "quakes"}, ""), intents.OK)
	}
	left(w)
	w = w.Restart()
	left(w)
	w.Want(erase(w, call, catalog.ErasesEnvelope, catalog.ErasesResult), intents.OK)
	if at := append(inRecords(w, "anas-name"), inRecords(w, "anas-reply")...); len(at) > 0 {
		t.Errorf("still in records %v", at)
	}
}
