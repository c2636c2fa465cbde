package router_test

import (
	"testing"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
	"aob.dev/writ/storage"
)

// held makes a once skill of default need approval.
func held(w *routertest.World) (*routertest.Task, *intents.Answer) {
	w.Helper()
	w.Pin("pay", catalog.Once)
	w.Approval(`{"once":true}`, "bob")
	task := w.Begun("p1", "pay", "pay").Started(1)
	return task, w.Want(task.Call("pay", `{"n":1}`), intents.ApprovalRequired)
}

// A hold is a commit: it takes the key, and nothing is executed. Its task does the remaining work
// and ends; then the step is held, and only people can continue it.
func TestHold(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	task, a := held(w)
	if a.Decision.Verdict != intents.Hold || len(a.Decision.PolicyIDs) != 1 || a.Decision.PolicyIDs[0] != "writ.skill.once" ||
		len(a.Decision.Approvers) != 1 || a.Decision.Approvers[0] != "bob" {
		t.Errorf("%+v", a.Decision)
	}
	if r := receipt(w, a); r.Code != intents.ApprovalRequired || r.OutcomeDigest != "" {
		t.Errorf("receipt %+v", r)
	}
	if n := len(w.Bus.Calls("skill.call")); n != 0 {
		t.Errorf("%d dispatches", n)
	}
	h, err := w.Journal.Holder(t.Context(), *a.Position)
	w.Must(err)
	if h.State != storage.StateHeld {
		t.Errorf("state %s", h.State)
	}
	w.Want(task.Write("beside"), intents.OK)
	if s, steps := task.Status(); s != catalog.PlanExecuting || steps[0] != catalog.StepRunning {
		t.Errorf("plan %s, steps %v", s, steps)
	}
	w.Want(task.Finish("held", "", ""), intents.OK)
	w.Want(task.Call("pay", `{"n":2}`), intents.KeyRevoked)
	if s, steps := task.Status(); s != catalog.PlanExecuting || steps[0] != catalog.StepPendingApproval {
		t.Errorf("plan %s, steps %v", s, steps)
	}
	w.Want(w.Do(task.StepIntent(task.NewTask(1).StepArgs())), intents.MalformedArgs)
	w.Want(task.Complete(), intents.MalformedArgs)
}

// The held intent sent again is the held intent, not a second request.
func TestHeldDuplicate(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	task, a := held(w)
	before := w.Journal.Next()
	dup := w.Want(task.Call("pay", `{"n":1}`), intents.ApprovalRequired)
	if dup.IntentID != a.IntentID || dup.Receipt != a.Receipt || dup.Replayed || w.Journal.Next() != before {
		t.Errorf("%+v", dup)
	}
	waited, err := w.Router.Await(t.Context(), *a.Position)
	w.Must(err)
	w.Want(waited, intents.ApprovalRequired)
}

// A plan that waits for a hold does not lack a driver; a claim leaves its step held, counts no
// interruption, and informs the driver.
func TestHeldPlan(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	task, a := held(w)
	w.Want(task.Finish("held", "", ""), intents.OK)
	w = w.Restart()
	p := task.Plan.On(w)
	if got := w.Dir.Silent(w.Journal.Next()); len(got) != 0 {
		t.Errorf("silent: %+v", got)
	}
	v := routertest.Result[catalog.PlanView](w, p.Claim())
	if v.Status != catalog.PlanExecuting || v.ReplanCount != 0 || v.Steps[0].Status != catalog.StepPendingApproval {
		t.Errorf("%+v", v)
	}
	if len(v.IntentHistory) != 1 || v.IntentHistory[0].IntentID != a.IntentID || v.IntentHistory[0].Status != "held" {
		t.Errorf("facts %+v", v.IntentHistory)
	}
	w.Want(p.Cancel(w.Gateway), intents.OK)
}

// A restart does not change held intents.
func TestHeldSurvivesRestart(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	task, a := held(w)
	before := w.Journal.Next()
	w = w.Restart()
	if w.Journal.Next() != before {
		t.Errorf("%d records more", w.Journal.Next()-before)
	}
	task.Plan = task.Plan.On(w)
	if dup := w.Want(task.Call("pay", `{"n":1}`), intents.ApprovalRequired); dup.Receipt != a.Receipt {
		t.Error("another receipt after the restart")
	}
}

// TestHoldEndsFirst: if people decide before the task reports that it waits, the step continues at
// once under the same driver; a task without a hold cannot report that it waits.
func TestHoldEndsFirst(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	people(w)
	w.Pin("pay", catalog.Once)
	w.Data("approval", `{"once":true}`)
	p := w.Begun("p1", "pay", "pay")
	task := p.Started(1)
	if a := w.Want(task.Finish("held", "", ""), intents.MalformedArgs); a.Pointer != "/intent/args/status" {
		t.Errorf("pointer %s", a.Pointer)
	}
	x := releaseWorld{w, task, w.Want(task.Call("pay", `{"n":1}`), intents.ApprovalRequired)}
	x.state(x.says("ben", catalog.DecisionApprove))
	w.Want(x.outcome(), intents.OK)
	w.Want(task.Finish("held", "", "one waits"), intents.OK)
	if s, steps := p.Status(); s != catalog.PlanExecuting || steps[0] != catalog.StepPending {
		t.Errorf("plan %s, steps %v", s, steps)
	}
	if got := w.Dir.Silent(0); len(got) != 0 {
		t.Errorf("it has a driver, and is handed out again: %+v", got)
	}
	p.Started(1).Done()
}

// TestDestructiveIsHeld: an idempotent skill is not thereby harmless. A skill that does more than
// read needs approval, unless its approver said that nothing is lost.
func TestDestructiveIsHeld(t *testing.T) {
	heldCall(routertest.New(t, routertest.Options{}), catalog.Idempotent, `{"once":true}`)
	for destructive, want := range map[string]intents.Code{intents.Yes: intents.ApprovalRequired, intents.No: intents.OK} {
		w := routertest.New(t, routertest.Options{})
		people(w)
		w.Want(w.Admin("skill.approve", catalog.SkillApprove{Tenant: "default", Skill: "purge", Digest: intents.Digest(nil), Effect: catalog.Idempotent, Destructive: destructive}), intents.OK)
		w.Data("approval", `{"once":true}`)
		w.Want(w.Begun("p1", "purge", "purge").Started(1).Call("purge", `{}`), want)
	}
}
