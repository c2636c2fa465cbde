package router_test

import (
	"encoding/json"
	"testing"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
)

// left commits an intent that no router executes: the process died between commit and outcome. The
// records are in the journal of the world returned, whose router has not been started.
func left(w *routertest.World, o routertest.Intent) (*routertest.World, *intents.Answer) {
	w.Helper()
	died := make(chan struct{})
	position := make(chan struct{})
	w.Bus.On(o.Type, dies(position, died))
	raw, id := w.SignID(o)
	go w.Send(raw)
	<-position
	at := w.Journal.Next() - 1
	next := w.Reopen()
	w.Must(w.Journal.(interface{ Close() error }).Close())
	close(died)
	return next, &intents.Answer{IntentID: id, Position: &at}
}

// A pure intent left open is abandoned; a new driver claims the plan, the step runs again, and the
// new task gets the earlier results as replays.
func TestCrashAndReclaim(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	task := started(w, catalog.Pure)
	w.Want(task.Call("feed", `{}`), intents.OK)
	script := task.Intent("exec_python", catalog.ExecPython{Script: "print(1)"})
	w, open := left(w, script)
	w.Start()
	w.Bus.On("exec_python", routertest.Always(routertest.Done(catalog.ExecPythonResult{Output: []byte(`[1,2]`)})))
	a, err := w.Router.Intent(t.Context(), *open.Position)
	w.Must(err)
	if a.Code != intents.Abandoned || !a.Outcome.Retryable || a.Outcome.Attempt != 1 {
		t.Errorf("%+v", a.Outcome)
	}
	p := task.Plan.On(w)
	v := routertest.Result[catalog.PlanView](w, p.Claim())
	if v.Epoch != 2 || v.Status != catalog.PlanExecuting || v.Steps[0].Status != catalog.StepPending || v.ReplanCount != 0 || len(v.IntentHistory) != 0 {
		t.Errorf("%+v", v)
	}
	again := p.Started(1)
	if call := w.Want(again.Call("feed", `{}`), intents.OK); !call.Replayed {
		t.Error("the earlier task's call was made again")
	}
	w.OK(again.Intent("exec_python", catalog.ExecPython{Script: "print(1)"}))
	if k := again.Done(); p.View().Steps[0].MemoryKey != k {
		t.Errorf("memory key %s", p.View().Steps[0].MemoryKey)
	}
	w.Want(p.Complete(), intents.OK)
}

// After a once intent the step continues: the next task is informed of it, an equal intent is the
// same intent, and the next occurrence is another one.
func TestCrashAfterOnce(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	w.Pin("pay", catalog.Once)
	w.Pin("feed", catalog.Pure)
	p := w.Begun("p1", "feed", "pay")
	p.Started(1).Done()
	call := p.Started(2).CallIntent("pay", `{"n":1}`)
	call.Ctx.Call = "1.0"
	paid := w.Want(w.Do(call), intents.OK)
	claimed := w.Want(p.Claim(), intents.OK)
	v := routertest.Result[catalog.PlanView](w, claimed)
	if v.Status != catalog.PlanExecuting || v.ReplanCount != 0 || v.Steps[0].Status != catalog.StepDone || v.Steps[1].Status != catalog.StepPending {
		t.Fatalf("%+v", v)
	}
	if len(v.IntentHistory) != 1 || v.IntentHistory[0].IntentID != paid.IntentID || v.IntentHistory[0].Status != "done" || v.IntentHistory[0].Effect != catalog.Once || string(v.IntentHistory[0].Args) != `{"input":{"n":1},"skill":"pay"}` {
		t.Errorf("facts %+v", v.IntentHistory)
	}
	told := func(a *intents.Answer) {
		t.Helper()
		var got catalog.PlanDetails
		w.Must(json.Unmarshal(a.Details, &got))
		want := catalog.CallSummary{Step: 2, IntentID: paid.IntentID, Call: "1.0", Type: "skill.call", Status: "done"}
		if len(got.Calls) != 1 || got.Calls[0] != want || len(got.IntentHistory) != 1 {
			t.Errorf("told %s", a.Details)
		}
	}
	told(claimed)
	task := p.NewTask(2)
	told(w.Want(w.Do(p.StepIntent(task.StepArgs())), intents.OK))
	if a := w.Want(task.Call("pay", `{"n":1}`), intents.OK); a.IntentID != paid.IntentID || !a.Replayed {
		t.Errorf("%+v", a)
	}
	other := task.CallIntent("pay", `{"n":1}`)
	other.Key = "other"
	if a := w.Want(w.Do(other), intents.ConflictIdempotency); a.Pointer != "/intent/args" {
		t.Errorf("pointer %s", a.Pointer)
	}
	meant := task.CallIntent("pay", `{"n":1}`)
	meant.Ctx.Occurrence = 2
	if a := w.Want(w.Do(meant), intents.ConflictIdempotency); a.Pointer != "/context/occurrence" {
		t.Errorf("pointer %s", a.Pointer)
	}
	meant.Ctx.Occurrence = 1
	w.OK(meant)
	if n := len(w.Bus.Calls("skill.call")); n != 2 {
		t.Errorf("%d effects", n)
	}
}

// A once intent left open is indeterminate: its effect is unknown, so nobody repeats it, not even
// as another occurrence. Other calls of the skill wait until it is resolved.
func TestCrashDuringOnce(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	task := started(w, catalog.Once)
	w, open := left(w, task.CallIntent("feed", `{"n":1}`))
	w.Start()
	w.Bus.On("skill.call", routertest.Always(routertest.Done(catalog.SkillCallResult{Output: []byte(`1`)})))
	p := task.Plan.On(w)
	v := routertest.Result[catalog.PlanView](w, p.Claim())
	if v.Status != catalog.PlanExecuting || v.Steps[0].Status != catalog.StepPending || len(v.IntentHistory) != 1 || v.IntentHistory[0].IntentID != open.IntentID || v.IntentHistory[0].Status != "indeterminate" || v.IntentHistory[0].Code != intents.Indeterminate {
		t.Fatalf("%+v", v)
	}
	next := p.Started(1).CallIntent("feed", `{"n":1}`)
	w.Want(w.Do(next), intents.Indeterminate) // the same intent
	next.Ctx.Occurrence = 1
	w.Want(w.Do(next), intents.ConflictIdempotency)
	next.Ctx.Occurrence, next.Args = 0, catalog.SkillCall{Skill: "feed", Input: []byte(`{"n":2}`)}
	w.Want(w.Do(next), intents.ApprovalRequired)
}

// A once intent that was certainly not delivered does not stop its step.
func TestCrashAfterUndelivered(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	task := started(w, catalog.Once)
	w.Bus.On("skill.call", nil)
	w.Want(task.Call("feed", `{}`), intents.DispatchUnavailable)
	v := routertest.Result[catalog.PlanView](w, task.Claim())
	if v.Status != catalog.PlanExecuting || v.Steps[0].Status != catalog.StepPending || v.IntentHistory[0].Status != "failed" {
		t.Errorf("%+v", v)
	}
	w.Bus.On("skill.call", routertest.Always(routertest.Done(catalog.SkillCallResult{Output: []byte(`1`)})))
	w.Want(task.Plan.Started(1).Call("feed", `{}`), intents.OK)
}

// Plans without a driver are listed for the gateway, with what it needs.
func TestSilent(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	pending, running, over := w.NewPlan("pending"), w.NewPlan("driven"), w.NewPlan("over")
	for _, p := range []*routertest.Plan{pending, running, over} {
		w.Want(p.Open(), intents.OK)
	}
	w.Want(running.Claim(), intents.OK)
	w.Want(over.Cancel(w.Gateway), intents.OK)
	before := w.Journal.Next()
	w.Want(w.NewPlan("new").Open(), intents.OK)
	if got := w.Dir.Silent(0); len(got) != 0 {
		t.Errorf("before any restart: %+v", got)
	}
	got := w.Dir.Silent(before)
	if len(got) != 2 || got[0].Plan.PlanID == got[1].Plan.PlanID {
		t.Fatalf("%+v", got)
	}
	for _, s := range got {
		p := s.Plan
		if p.TenantID != "default" || p.UserID != "ana" || p.Task != "Which ten?" || p.SessionID != routertest.SessionOf(p.PlanID) || p.TurnID != routertest.Turn ||
			s.Client != "test" || len(s.Roles) != 1 || s.Trace == "" && p.PlanID == "" || (p.PlanID == running.ID) != (p.Epoch == 1) {
			t.Errorf("%+v", s)
		}
	}
}
