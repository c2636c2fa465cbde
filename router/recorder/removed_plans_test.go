package recorder_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
)

// TestLongClosedPlansAreListed: the document of a plan that has left the state is unchanged,
// including its texts and the end of its last intent, and so is one that is made again.
func TestLongClosedPlansAreListed(t *testing.T) {
	d := documents(t)
	w, f := woken(t, d)
	w.Pin("pay", catalog.Pure)
	w.Approval(`{"skills":["pay"]}`, "zoe")
	p := w.Begun("p1", "pay")
	w.Want(p.Cancel(w.Gateway), intents.OK)
	w.Clock.Move(state.PlanKept - time.Hour)
	w.Want(w.Do(routertest.Intent{
		By: w.Workflow, Type: "skill.call", Args: catalog.SkillCall{Skill: "pay"}, Ctx: intents.Context{PlanID: p.ID, Revision: 1, Step: 1},
	}), intents.ApprovalRequired)
	w.Clock.Move(intents.MaxHold)
	w.Want(w.NewPlan("later").Open(), intents.OK)
	want := p.View()
	if len(want.IntentHistory) != 1 || want.IntentHistory[0].Status != "held" || want.Task == "" {
		t.Fatalf("%+v", want)
	}
	want.IntentHistory[0].Status, want.IntentHistory[0].Code = string(intents.Failed), intents.ApprovalExpired
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
