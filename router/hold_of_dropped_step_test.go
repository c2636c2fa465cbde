package router_test

import (
	"testing"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
)

// heldBeside is a plan of two steps side by side, of which the first is held and the second
// has failed.
func heldBeside(t *testing.T) (releaseWorld, *routertest.Plan) {
	t.Helper()
	w := routertest.New(t, routertest.Options{})
	people(w)
	w.Pin("pay", catalog.Once)
	w.Data("approval", `{"skills":["pay"]}`)
	p := w.NewPlan("p1")
	w.Want(p.Open(), intents.OK)
	w.Want(p.Claim(), intents.OK)
	steps := routertest.Steps(1, "pay", "pay")
	steps[1].InputFromStep, steps[1].Parallel = 0, true
	w.Want(p.Plan(steps), intents.OK)
	task := p.Started(1)
	x := releaseWorld{w, task, w.Want(task.Call("pay", `{"n":1}`), intents.ApprovalRequired)}
	w.Want(task.Finish("held", "", ""), intents.OK)
	w.Want(p.Started(2).Finish("failed", "", "nothing there"), intents.OK)
	return x, p
}

func drops(p *routertest.Plan, first int, drop ...int) routertest.Intent {
	o := p.PlanIntent(nil)
	o.Args = catalog.Plan{PlanID: p.ID, Epoch: p.Epoch, Revision: 2, Steps: routertest.Steps(first, "pay"), Drop: drop}
	return o
}

// A revision that drops a held step ends its hold in the same commit: nobody can approve it any
// more, and another step may make its call. The plan is not dispatched for it.
func TestDrop(t *testing.T) {
	x, p := heldBeside(t)
	before := x.Dir.Next()
	id := x.Want(x.Do(drops(p, 3, 1)), intents.OK).IntentID
	if n := x.Dir.Next() - before; n != 3 {
		t.Errorf("%d records, want the intent, its outcome and that of the hold", n)
	}
	x = x.on(x.Restart())
	p = p.On(x.World)
	p.Digest, p.Revision = id, 2
	x.Want(x.outcome(), intents.Cancelled)
	x.Want(x.says("ben", catalog.DecisionApprove), intents.MalformedArgs)
	if got := x.Dir.Silent(0); len(got) != 0 {
		t.Errorf("silent %+v", got)
	}
	task := p.Started(3)
	x.held = x.Want(task.Call("pay", `{"n":1}`), intents.ApprovalRequired)
	x.Want(task.Finish("held", "", ""), intents.OK)
	x.Want(x.says("ben", catalog.DecisionApprove), intents.OK)
	x.Want(x.outcome(), intents.OK)
	if got := x.Dir.Silent(0); len(got) != 1 {
		t.Errorf("not handed out: %+v", got)
	}
}

// A rejected step can be dropped, too; one that is done, replaced or missing cannot.
func TestDropRefused(t *testing.T) {
	x, p := heldBeside(t)
	for name, drop := range map[string]int{"failed": 2, "not there": 7} {
		if a := x.Do(drops(p, 3, drop)); a.Code != intents.MalformedArgs || a.Pointer != "/intent/args/drop" {
			t.Errorf("%s: %+v", name, a)
		}
	}
	x.Want(x.says("ben", catalog.DecisionReject), intents.OK)
	x.Want(x.Do(drops(p, 3, 1)), intents.OK)
	if s := p.View().Steps; len(s) != 1 || s[0].Step != 3 {
		t.Errorf("%+v", s)
	}
}
