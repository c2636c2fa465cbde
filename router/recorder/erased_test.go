package recorder_test

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/router/routertest"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
)

// What was made of an order before it was erased is what is made of its records
// afterwards, and none of it has what was erased. That the plan has left the state by
// then changes nothing.
func TestErased(t *testing.T) {
	t.Run("of a closed plan", func(t *testing.T) { testErased(t, func(*routertest.World) {}) })
	t.Run("while its plan leaves", func(t *testing.T) { testErased(t, func(w *routertest.World) { w.Clock.Move(state.PlanKept) }) })
	t.Run("of a plan that has left", func(t *testing.T) {
		testErased(t, func(w *routertest.World) {
			w.Clock.Move(state.PlanKept)
			w.Want(w.NewPlan("later").Open(), intents.OK)
			if _, ok := w.Dir.View().Plan("default", routertest.PlanID("p2")); ok {
				t.Fatal("the plan is still there")
			}
		})
	})
}

func testErased(t *testing.T, closed func(w *routertest.World)) {
	t.Helper()
	live := documents(t)
	w, f := woken(t, live)
	w.Pin("pay", catalog.Once)
	p := w.Begun("p2", "pay")
	w.Bus.On("skill.call", routertest.Always(routertest.Done(catalog.SkillCallResult{Output: []byte(`"anas-reply"`)},
		routertest.Fact("skill.called", `{"skill_id":"pay","input_size_bytes":4}`))))
	task := p.Started(1)
	call := w.Want(task.Call("pay", `{"to":"anas-name"}`), intents.OK)
	w.Bus.On("plan.get", routertest.Always(routertest.Done(catalog.PlanGetResult{Plan: p.View()})))
	read := w.OK(routertest.Order{By: w.Manager, Type: "plan.get", Args: catalog.PlanGet{PlanID: routertest.PlanID("p2")}})
	denied := w.Want(task.Call("other", `{"to":"anas-name"}`), intents.TaskScope)
	w.Want(p.Claim(), intents.OK) // interrupted: the plan tells of the call
	w.Want(p.Fail(), intents.OK)
	closed(w)
	f.caughtUp()
	shown := func(d storage.Documents) bool {
		for _, docs := range dump(t, d, "default", "system") {
			for _, doc := range docs {
				if bytes.Contains(doc.Body, []byte("anas-")) {
					return true
				}
			}
		}
		return false
	}
	if !shown(live) {
		t.Fatal("the test looks in the wrong place")
	}
	for _, a := range []*intents.Answer{call, read, denied} {
		parts := []string{catalog.ErasesOrder, catalog.ErasesResult}
		if a == denied {
			parts = parts[:1]
		}
		w.Want(w.Admin("record.erase", catalog.RecordErase{Tenant: "default", IntentID: a.IntentID, Position: *a.Position, Parts: parts, Reason: "asked for"}), intents.OK)
	}
	f.caughtUp()
	f.stop()
	again := documents(t)
	g := follow(t, w, again)
	g.caughtUp()
	g.stop()
	if d := cmp.Diff(dump(t, live, "default", "system"), dump(t, again, "default", "system")); d != "" {
		t.Error(d)
	}
	if shown(live) {
		t.Error("what was erased is still in a document")
	}
}
