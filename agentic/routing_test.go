package agentic

import (
	"encoding/json"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/state/agents"
)

// TestClassifierHasItsModel: the model of that name chooses the agent, or the default model if
// there is none.
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
		d := &plannedRun{conversation: &conversation{Run: &Run{cfg: cfg, plan: catalog.PlanView{Routing: &catalog.RoutingContext{}}}, task: "Where is my order?"}}
		said, err := d.classify(t.Context(), []catalog.OtherAgent{{Agent: "small", Description: "a", Routing: &catalog.RoutingTerms{}}, {Agent: "strong", Description: "b", Routing: &catalog.RoutingTerms{}}})
		if err != nil || said.Agent != want {
			t.Errorf("%+v, %v", said, err)
		}
	}
}

// TestRoutedMessage: a remote agent receives the classifier's findings.
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

// TestRemoteTurnsAreCounted: turns are counted by agent, with the server's time and failure.
// Messages that wait for approval are not counted, and requests by another agent are counted
// there.
func TestRemoteTurnsAreCounted(t *testing.T) {
	ended := func(code intents.Code) error { return &IntentError{"skill.call", &intents.Answer{Code: code}} }
	for _, tt := range []struct {
		ask  string
		err  error
		want []string
	}{
		{"", nil, []string{"desk 2s 2s "}},
		{"", ended(intents.ExecutorTimeout), []string{"desk 2s 2s timeout"}},
		{"", ended(intents.ExecutorFailed), []string{"desk 2s 2s failed"}},
		{"", ended(intents.DispatchUnavailable), []string{"desk 2s 2s failed"}},
		{"", ended(intents.Indeterminate), []string{"desk 2s 2s failed"}},
		{"", ended(intents.PolicyDenied), []string{"desk 2s 2s refused"}},
		{"", errors.New("no answer"), []string{"desk 2s 2s refused"}},
		{"", ended(intents.ApprovalRequired), nil},
		{"1.0", nil, nil},
	} {
		var got []string
		w := &worker{req: runRequest{Ask: tt.ask}, cfg: Config{CountAsk: func(agent string, took, busy time.Duration, failure string) {
			got = append(got, agent+" "+took.String()+" "+busy.String()+" "+failure)
		}}}
		w.countTurn("desk", 2*time.Second, tt.err)
		if d := cmp.Diff(tt.want, got); d != "" {
			t.Errorf("%v: %s", tt.err, d)
		}
	}
}
