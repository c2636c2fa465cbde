package router_test

import (
	"fmt"
	"testing"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
	"aob.dev/writ/state"
)

// TestOpenPlansAreBounded: beyond the bound a plan is not opened, and nothing is recorded; a plan
// that closes makes room, also after a restart.
func TestOpenPlansAreBounded(t *testing.T) {
	w := routertest.New(t, routertest.Options{TenantPlans: 2})
	open := func(id string) *intents.Answer { return w.NewPlan(id).Open() }
	w.Want(open("p1"), intents.OK)
	w.Want(open("p2"), intents.OK)
	before := len(w.Records())
	if a := w.Want(open("p3"), intents.Overloaded); a.RetryAfter == 0 || a.Hint == "" {
		t.Errorf("%+v", a)
	}
	if n := len(w.Records()); n != before {
		t.Errorf("%d records for what was not taken", n-before)
	}
	w.Want(open("p1"), intents.OK) // a duplicate opens nothing
	submitted(w, batchOf(w.Sign(w.NewPlan("p4").OpenIntent())), intents.Overloaded)
	if got := w.Router.Counts().Stats; got.Open != 2 || got.Closed != 0 || got.Words == 0 {
		t.Errorf("%+v", got)
	}
	w = w.Restart()
	w.Want(w.Do(w.NewPlan("p3").OpenIntent()), intents.Overloaded)
	w.Want(w.NewPlan("p1").Cancel(w.Gateway), intents.OK)
	submitted(w, batchOf(w.Sign(w.NewPlan("p3").OpenIntent()), w.Sign(w.NewPlan("p4").OpenIntent())), intents.Overloaded)
	w.Want(w.Do(w.NewPlan("p3").OpenIntent()), intents.OK)
	other := w.NewPlan("p5").OpenIntent()
	w.Want(w.Admin("admin.put", catalog.AdminPut{New: &catalog.Tenant{ID: "acme"}}), intents.OK)
	other.Tenant = "acme"
	w.Want(w.Do(other), intents.OK)
}

// TestClosedPlansLeaveNoWords: a directory that decides retains no texts of closed plans, and its
// decisions are the same.
func TestClosedPlansLeaveNoWords(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	w.Pin("feed", catalog.Pure)
	for i := range 5 {
		p := w.Begun(fmt.Sprint("p", i), "feed")
		p.Started(1)
		if i > 0 {
			w.Want(p.Cancel(w.Gateway), intents.OK)
		}
	}
	d := state.New()
	for _, r := range w.Records() {
		d.Observe(state.EntryOf(r))
	}
	w.Must(d.Err())
	live, _ := d.View().Plan("default", routertest.PlanID("p0"))
	want := state.Stats{Open: 1, Closed: 4, Tasks: 5, Words: int64(len(live.Task) + len(live.Steps[0].Task))}
	if got := d.Stats(); got != want || want.Words == 0 {
		t.Errorf("%+v, want %+v", got, want)
	}
	for i := range 5 {
		p, _ := d.View().Plan("default", routertest.PlanID(fmt.Sprint("p", i)))
		status := catalog.PlanFailed
		if i == 0 {
			status = catalog.PlanExecuting
		}
		if p.Status != status || len(p.Steps) != 1 || p.Steps[0].ReturnSpec != live.Steps[0].ReturnSpec || (p.Task == "") != (i > 0) {
			t.Errorf("%+v", p)
		}
		task, ok := d.View().Task("default/" + routertest.TaskID(fmt.Sprint("_", i+1)))
		if !ok || len(task.Spec.Skills) != 1 || task.Spec.ReturnSpec.Shape == "" {
			t.Errorf("%+v", task)
		}
	}
}
