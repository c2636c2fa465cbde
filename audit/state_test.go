package audit_test

import (
	"bytes"
	"strings"
	"testing"

	"aob.dev/writ/audit"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
	"aob.dev/writ/policies"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
)

const unshown = "state: the bundle does not show all that the intent rests on"

// TestTransitionsOfAPartialBundle: transitions cannot be judged where a bundle does not show the whole log: they are
// applied, and counted.
func TestTransitionsOfAPartialBundle(t *testing.T) {
	w := newWorld(t)
	w.live(2)
	transitions := int64(0)
	for _, r := range w.Records() {
		if d := r.Parts[storage.PartDecision]; bytes.Contains(d, []byte(`"executor":"router"`)) && bytes.Contains(d, []byte(`"verdict":"allow"`)) {
			transitions++
		}
	}
	whole := w.verify(w.export(w.Journal, audit.Selection{}), audit.Options{Trust: w.trust(), Replay: true})
	if !whole.OK || whole.Why[unshown] != 0 {
		t.Errorf("%v, %v", whole.FirstBad, whole.Why)
	}
	w.Clock.Move(1)
	part := w.verify(w.export(w.Journal, audit.Selection{Since: w.Clock.Now()}), audit.Options{Trust: w.trust(), Replay: true})
	if got := part.Why[unshown]; !part.OK || got == 0 || got >= transitions {
		t.Errorf("%d of %d moves cannot be judged: %v", got, transitions, part.FirstBad)
	}
}

// TestIllegalTransitionInAPartialBundle: what a partial bundle cannot hide is found in it too: another user's plan, and a
// key that another task has had.
func TestIllegalTransitionInAPartialBundle(t *testing.T) {
	for _, name := range []string{"step-by-another-user", "key-used-again", "second-key-of-task", "plan-opened-twice", "key-set-again", "no-such-tenant"} {
		t.Run(name, func(t *testing.T) {
			for _, m := range misdeeds {
				if m.name != name {
					continue
				}
				d := play(t, m.scene)
				bad := m.do(d)
				r := d.verify(d.export(d.records, audit.Selection{Since: d.records[bad].At}), audit.Options{Trust: d.trust()})
				if r.OK || r.Complete || r.FirstBad.Position != bad {
					t.Errorf("%v, want at %d", r.FirstBad, bad)
				}
			}
		})
	}
}

// TestFinishedWithAnErasedMemory: the key of a memory that was erased is not known: that its step was finished with
// it is no finding.
func TestFinishedWithAnErasedMemory(t *testing.T) {
	w := newWorld(t)
	w.live(1)
	var erase catalog.RecordErase
	for _, r := range w.Records() {
		if bytes.Contains(r.Parts[storage.PartEnvelope], []byte("write_memory")) {
			o, err := state.ReadIntent(r)
			w.Must(err)
			erase = catalog.RecordErase{Tenant: o.Tenant, IntentID: o.Decision.IntentID, Position: r.Position, Parts: []string{catalog.ErasesEnvelope, catalog.ErasesResult}, Reason: "asked for"}
		}
	}
	w.Want(w.Admin("record.erase", erase), intents.OK)
	r := w.verify(w.export(w.Journal, audit.Selection{}), audit.Options{Trust: w.trust(), Replay: true})
	if !r.OK || r.Withheld != 2 || r.Why[unshown] != 1 {
		t.Errorf("%v, %+v", r.FirstBad, r)
	}
}

// TestRefusedTransitionIsReplayed: a refused transition is decided again if its bundle shows the state that it was
// decided on.
func TestRefusedTransitionIsReplayed(t *testing.T) {
	w := newWorld(t)
	p := w.Begun("plan_1", "earthquake_feed")
	again := p.OpenIntent()
	again.Key = "again"
	at := *w.Want(w.Do(again), intents.MalformedArgs).Position
	r := w.verify(w.export(w.Journal, audit.Selection{}), audit.Options{Trust: w.trust(), Replay: true})
	if !r.OK || r.Unreplayable != 0 {
		t.Errorf("%v, %v", r.FirstBad, r.Why)
	}
	other := w.part(at, storage.PartDecision, func(m map[string]any) { m["code"] = string(intents.TaskScope) })
	if r := w.verify(w.export(other, audit.Selection{}), audit.Options{Trust: w.trust(), Replay: true}); r.Unreplayable != 1 {
		t.Errorf("refused for another reason: %v, %v", r.FirstBad, r.Why)
	}
}

// TestReleasedTransitionsAreJudged: held intents of the router are judged where they were held
// and where they were released. The age of a plan's id counts where it was held.
func TestReleasedTransitionsAreJudged(t *testing.T) {
	w := newWorld(t)
	hold := w.with("ext/plans.rego", func(string) string {
		return `package writ.ext.plans

# METADATA
# title: Plans
# description: Ben looks at plans.
# custom:
#   id: ext.plans
hold contains {"id": "ext.plans", "reason": "Ben looks at plans.", "approvers": ["ben"]} if input.intent.type in {"plan.open", "cancel"}
`
	})
	w.apiKeys("ben")
	w.user("ben", "approver")
	w.blobs.put(hold.Source().Manifest())
	for _, content := range hold.Source() {
		w.blobs.put(content)
	}
	_, err := w.Policy.ReplaceTree(t.Context(), policies.Tree{Source: hold.Source()}, w.Router.SelfProof)
	w.Must(err)
	w.Must(w.Router.PolicyChanged(t.Context()))
	yes := func(held *intents.Answer) {
		w.Clock.Move(2 * intents.MaxIDAge)
		w.Want(w.Do(routertest.Intent{
			By: w.Gateway, Type: "hitl.approve", User: "ben", Roles: []string{"approver"}, Grant: through("ben"),
			Args: catalog.Approve{IntentID: held.IntentID, Decision: catalog.DecisionApprove},
		}), intents.OK)
	}
	p := w.NewPlan("plan_1")
	yes(w.Want(p.Open(), intents.ApprovalRequired))
	w.Want(p.Claim(), intents.OK)
	yes(w.Want(p.Cancel(w.Gateway), intents.ApprovalRequired))
	bundle := w.export(w.Journal, audit.Selection{})
	r := w.verify(bundle, audit.Options{Trust: w.trust(), Replay: true})
	if !r.OK || r.Unreplayable != 0 || !strings.Contains(string(bundle), "plan.claim") {
		t.Errorf("%v, %v", r.FirstBad, r.Why)
	}
}

// TestRefusedForSessionAndBudget: refusals for a session or a budget are decided again as well: a busy session, and used-up
// tokens.
func TestRefusedForSessionAndBudget(t *testing.T) {
	w := newWorld(t)
	w.Pin("feed", catalog.Pure)
	w.Data("budgets", `{"tokens_per_turn":1000}`)
	p := w.Begun("plan_1", "feed")
	task := p.Started(1)
	w.Want(w.Do(task.Intent("step.finish", catalog.StepFinish{
		TaskID: task.TaskID, Status: "failed", Reason: "no", Usage: []catalog.Usage{{Agent: "executor", Model: "test:a", Calls: 1, InputTokens: 1000}},
	})), intents.OK)
	w.Want(p.Plan(routertest.Steps(2, "feed")), intents.OK)
	w.Want(w.Do(p.StepIntent(p.NewTask(2).StepArgs())), intents.RateLimited)
	first, second := w.NewPlan("plan_2"), w.NewPlan("plan_3")
	first.Session, second.Session = "both", "both"
	w.Want(first.Open(), intents.OK)
	w.Want(second.Open(), intents.SessionBusy)
	r := w.verify(w.export(w.Journal, audit.Selection{}), audit.Options{Trust: w.trust(), Replay: true})
	if !r.OK || r.Unreplayable != 0 {
		t.Errorf("%v, %v", r.FirstBad, r.Why)
	}
}
