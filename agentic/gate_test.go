package agentic

import (
	"encoding/json"
	"log/slog"
	"testing"
	"time"

	"aob.dev/writ/agentic/agents"
	"aob.dev/writ/agentic/model"
	"aob.dev/writ/intents/catalog"
)

// TestClassifierHasItsModel: the model of that name chooses the agent, and that of all
// agents where there is none.
func TestClassifierHasItsModel(t *testing.T) {
	for _, own := range []bool{true, false} {
		says := func(agent string) *scripted {
			args, err := json.Marshal(map[string]any{"agent": agent, "confidence": 0.95, "ambiguous": false, "intent_summary": "x", "language": "en", "entities": map[string]string{}})
			if err != nil {
				t.Fatal(err)
			}
			return &scripted{replies: []model.Response{{Calls: []model.Call{{ID: "1", Name: finalResult, Arguments: string(args)}}}}}
		}
		cfg := Config{Model: says("strong"), Now: time.Now, Log: slog.New(slog.DiscardHandler), Models: map[string]model.Model{}}
		want := "strong"
		if own {
			cfg.Models[agents.Classifier] = says("small")
			want = "small"
		}
		d := &drive{cfg: cfg, gate: &catalog.Gated{}, task: "Where is my order?"}
		said, err := d.classify(t.Context(), []catalog.OtherAgent{{Agent: "small", Description: "a", Routing: &catalog.Offered{}}, {Agent: "strong", Description: "b", Routing: &catalog.Offered{}}})
		if err != nil || said.Agent != want {
			t.Errorf("%+v, %v", said, err)
		}
	}
}

// TestRoutedMessage: a remote agent is told what the classifier has found out.
func TestRoutedMessage(t *testing.T) {
	w := &worker{req: runRequest{UserTask: "Mein Passwort, bitte"}}
	if m := w.messageOf(); m.Summary != "Mein Passwort, bitte" || m.Language != "en" || string(m.Entities) != "{}" {
		t.Errorf("without a route: %+v", m)
	}
	w.req.Route = &catalog.Route{IntentSummary: "Wants a new password", Language: "de", Entities: map[string]string{"account": "work"}}
	if m := w.messageOf(); m.Summary != "Wants a new password" || m.Language != "de" || string(m.Entities) != `{"account":"work"}` {
		t.Errorf("with one: %+v", m)
	}
}
