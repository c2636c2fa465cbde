package router_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
	"aob.dev/writ/state"
)

// TestTextsAreRestored: a closed plan, whose texts the state has dropped, gets them back from the
// texts of its intents: after revisions, after a release by people, and for an agent's plan, too.
// Nothing else of it changes.
func TestTextsAreRestored(t *testing.T) {
	w := rules(t, `{"id": "ext.ours", "reason": "We want to know.", "approvers": ["ben"]} if {
	input.intent.type == "plan.open"
	input.context.labels.careful == "yes"
}`)
	w.Pin("feed", catalog.Pure)
	p := w.Begun("p1", "feed", "feed")
	w.Want(p.Started(1).Finish("failed", "", "no"), intents.OK)
	steps := routertest.Steps(3, "feed")
	steps[0].Task = "Once more."
	w.Want(p.Plan(steps), intents.OK)
	w.Want(p.Fail(), intents.OK)
	held := w.NewPlan("p2").OpenIntent()
	held.Ctx.Labels = map[string]string{"careful": "yes"}
	x := releaseWorld{w, nil, w.Want(w.Do(held), intents.ApprovalRequired)}
	x.says("ben", catalog.DecisionApprove)
	w.Want(w.NewPlan("p2").Cancel(w.Gateway), intents.OK)
	w.TwoSteps()
	agents := w.BegunAgent("p3", "general")
	w.Want(agents.Started(1).Reply("These."), intents.OK)
	w.Want(agents.Complete(), intents.OK)
	d, records := state.New(), w.Records()
	open := map[string]catalog.PlanView{} // as they were last before they were closed
	names := []string{"p1", "p2", "p3", "plan_1"}
	for _, r := range records {
		d.Observe(state.EntryOf(r))
		for _, name := range names {
			p, texts, there := d.PlanWithoutTexts("default", routertest.PlanID(name))
			if there && p.CompletedAt == nil {
				open[name] = p
				if texts != nil {
					t.Errorf("%s is open and has texts elsewhere", name)
				}
			}
		}
	}
	w.Must(d.Err())
	for _, name := range names {
		id := routertest.PlanID(name)
		closed, texts, _ := d.PlanWithoutTexts("default", id)
		got, _, _ := d.PlanWithoutTexts("default", id)
		if got.Task != "" || got.Response != "" || got.CompletedAt == nil {
			t.Errorf("%s: %+v", id, got)
		}
		for _, at := range texts {
			s, err := state.ReadIntent(records[at])
			w.Must(err)
			w.Must(state.RestoreTexts(&got, s))
		}
		want := closed
		want.Task, want.Steps = open[name].Task, slices.Clone(closed.Steps)
		for i, s := range open[name].Steps {
			want.Steps[i].Task = s.Task
		}
		if name == "p3" || name == "plan_1" {
			want.Response = "These."
		}
		if diff := cmp.Diff(want, got); diff != "" || want.Task == "" {
			t.Errorf("%s: %s", id, diff)
		}
	}
}
