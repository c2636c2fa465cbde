package router_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/router/routertest"
	"aob.dev/writ/state"
)

// TestWordsAreToldAgain: a plan whose words the fold has dropped is, with what its
// orders say, the plan as it was: after revisions, and where people had to release it.
func TestWordsAreToldAgain(t *testing.T) {
	w := rules(t, `{"id": "ext.ours", "reason": "We want to know.", "approvers": ["ben"]} if {
	input.intent.type == "plan.open"
	input.context.labels.careful == "yes"
}`)
	w.Pin("feed", catalog.Pure)
	p := w.Begun("p1", "feed", "feed")
	w.Want(p.Started(1).Finish("failed", "", "no"), intents.OK)
	steps := routertest.Steps(1, "feed")
	steps[0].Task = "Once more."
	w.Want(p.Plan(steps), intents.OK)
	w.Want(p.Fail(), intents.OK)
	held := w.NewPlan("p2").OpenOrder()
	held.Ctx.Labels = map[string]string{"careful": "yes"}
	x := asked{w, nil, w.Want(w.Do(held), intents.ApprovalRequired)}
	x.says("ben", catalog.DecisionApprove)
	w.Want(w.NewPlan("p2").Cancel(w.Gateway), intents.OK)
	w.TwoSteps()
	d, all := state.New().ForgetWords(), state.New()
	records := w.Records()
	for _, r := range records {
		d.Observe(state.EntryOf(r))
		all.Observe(state.EntryOf(r))
	}
	w.Must(d.Err())
	for _, name := range []string{"p1", "p2", "plan_1"} {
		id := routertest.PlanID(name)
		got, said, _ := d.Told("default", id)
		want, none, ok := all.Told("default", id)
		if got.Task != "" || got.Response != "" || !ok || none != nil {
			t.Errorf("%s: %+v", id, got)
		}
		for _, at := range said {
			s, err := state.ReadOrder(records[at])
			w.Must(err)
			w.Must(state.Retell(&got, s))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", id, diff)
		}
	}
}
