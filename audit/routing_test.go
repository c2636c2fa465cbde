package audit_test

import (
	"bytes"
	"testing"

	"aob.dev/writ/audit"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
)

// TestRoutingReplays: an auditor decides the routes of a log again when the intents show
// the classifier's result, and also when they were erased, with all texts.
func TestRoutingReplays(t *testing.T) {
	w := newWorld(t)
	w.PushAgents(1, routertest.Desk)
	said := func(agent string, confidence float64, decision string) catalog.Route {
		r := route(agent, confidence, decision)
		r.IntentSummary, r.Entities, r.Language = "anas-word", map[string]string{"what": "anas-word"}, "de"
		return r
	}
	var answers []*intents.Answer
	ended := func(p *routertest.Plan) {
		t.Helper()
		w.Want(p.Started(1).Reply("These."), intents.OK)
		answers = append(answers, w.Want(p.Complete(), intents.OK))
	}
	first, _ := w.OpenRouted("first", "S1", routertest.DefaultRouting)
	answers = append(answers, w.Want(first.Routed(said("password", 0.4, catalog.RouteClarify), "", "These."), intents.OK), w.Want(first.Complete(), intents.OK))
	second, _ := w.OpenRouted("second", "S1", routertest.DefaultRouting)
	answers = append(answers, w.Want(second.Routed(said("password", 0.9, catalog.RouteConfident), "password", ""), intents.OK))
	ended(second)
	third := w.NewPlan("third")
	answers = append(answers, w.Want(w.Do(third.OpenRoutedIntent(routertest.DefaultRouting, "S1")), intents.OK))
	third.Digest = answers[len(answers)-1].IntentID
	w.Want(third.Claim(), intents.OK)
	ended(third)

	r := w.verify(w.export(w.Journal, audit.Selection{}), audit.Options{Trust: w.trust(), Replay: true})
	if !r.OK || !r.Complete || r.Replayed == 0 {
		t.Errorf("%+v %v", r, r.FirstBad)
	}
	for _, a := range answers {
		w.Want(w.Erase(a, catalog.ErasesEnvelope), intents.OK)
	}
	if v := second.View(); v.Route.IntentSummary != "" || v.Route.Decision != catalog.RouteConfident {
		t.Errorf("%+v", v.Route)
	}
	for name, sel := range map[string]audit.Selection{"all": {}, "masked": {Masked: true}} {
		bundle := w.export(w.Journal, sel)
		if bytes.Contains(bundle, []byte("anas-word")) {
			t.Errorf("%s: the bundle shows a text", name)
		}
		r := w.verify(bundle, audit.Options{Trust: w.trust(), Replay: true})
		if !r.OK || r.Why["the intent is withheld: it was erased"] != int64(len(answers)) {
			t.Errorf("%s: %+v %v", name, r, r.FirstBad)
		}
	}
	_, before, err := w.Dir.Digest()
	w.Must(err)
	again := w.Restart()
	if _, after, err := again.Dir.Digest(); err != nil || after != before {
		t.Errorf("the state is another one after a restart: %s %s %v", before, after, err)
	}
}
