package recorder_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/router/routertest"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
)

// TestLongClosedPlansAreTold: the document of a plan that has left tells it as it was,
// its words and the end of its last order too, and so does one that is made anew.
func TestLongClosedPlansAreTold(t *testing.T) {
	d := documents(t)
	w, f := woken(t, d)
	w.Pin("pay", catalog.Pure)
	w.Approval(`{"skills":["pay"]}`, "zoe")
	p := w.Begun("p1", "pay")
	w.Want(p.Cancel(w.Gateway), intents.OK)
	w.Clock.Move(state.PlanKept - time.Hour)
	w.Want(w.Do(routertest.Order{
		By: w.Workflow, Type: "skill.call", Args: catalog.SkillCall{Skill: "pay"}, Ctx: intents.Context{PlanID: p.ID, Revision: 1, Step: 1},
	}), intents.ApprovalRequired)
	w.Clock.Move(intents.MaxHold)
	w.Want(w.NewPlan("later").Open(), intents.OK)
	want := p.View()
	if len(want.Facts) != 1 || want.Facts[0].Status != "held" || want.Task == "" {
		t.Fatalf("%+v", want)
	}
	want.Facts[0].Status, want.Facts[0].Code = string(intents.Failed), intents.ApprovalExpired
	w.Must(w.Router.ExpireHolds(t.Context()))
	if _, ok := w.Dir.View().Plan("default", p.ID); ok {
		t.Fatal("still in the state")
	}
	w.Want(w.NewPlan("last").Open(), intents.OK)
	f.caughtUp()
	f.stop()
	again := documents(t)
	g := follow(t, w, again)
	g.caughtUp()
	g.stop()
	if diff := cmp.Diff(dump(t, d, "default", "system"), dump(t, again, "default", "system")); diff != "" {
		t.Errorf("made anew: %s", diff)
	}
	doc, err := d.Get(t.Context(), "default", storage.IndexPlans, p.ID)
	w.Must(err)
	var got catalog.PlanView
	w.Must(json.Unmarshal(doc.Body, &got))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
