package agentic

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"aob.dev/writ/agentic/agents"
	"aob.dev/writ/agentic/model"
)

// TestLimits: an agent that has used up its requests or tokens gets one last request,
// with its outputs alone; then it ends, with an output or without.
func TestLimits(t *testing.T) {
	offer := func(name string, output bool) *tool {
		return newTool(tool{
			Tool: model.Tool{Name: name, Schema: json.RawMessage(`{"type":"object"}`)}, output: output,
			call: func(context.Context, string, json.RawMessage) (any, error) { return "done", nil },
		})
	}
	look, end := call("look", struct{}{}), call("end", struct{}{})
	for name, tt := range map[string]struct {
		limits  agents.Limits
		replies []any
		asked   int
		err     error
	}{
		"requests":           {agents.Limits{Requests: 2}, []any{look, look, end}, 3, nil},
		"tokens":             {agents.Limits{Tokens: 20}, []any{look, look, end}, 3, nil}, // 11 each
		"never":              {agents.Limits{Requests: 2}, []any{look}, 3, errLimit},
		"before it is spent": {agents.Limits{Requests: 2}, []any{look, end}, 2, nil},
	} {
		t.Run(name, func(t *testing.T) {
			a, err := agents.New(agents.Agent{Name: "a", Description: "d", Limits: tt.limits})
			if err != nil {
				t.Fatal(err)
			}
			m := says(map[string][]any{"a": tt.replies})
			l := loop{model: m, agent: a, req: model.Request{Agent: "a"}, tools: []*tool{offer("look", false), offer("end", true)}}
			if _, err := l.run(t.Context()); !errors.Is(err, tt.err) {
				t.Errorf("got %v", err)
			}
			all := m.requests("a")
			if len(all) != tt.asked {
				t.Fatalf("%d requests", len(all))
			}
			if last := all[len(all)-1].Tools; tt.asked == 3 && (len(last) != 1 || last[0].Name != "end") {
				t.Errorf("the last request offers %+v", last)
			}
		})
	}
}

// TestRequestOfAgent: what a definition says of the model's work goes with each request.
func TestRequestOfAgent(t *testing.T) {
	a, err := agents.Parse([]byte("name: a\ndescription: You count.\ntemperature: 0.7\nstop: [END]\n"))
	if err != nil {
		t.Fatal(err)
	}
	r := request(a, "", theTurn, time.Now(), "[Task]\nHello")
	if r.System != "You count.\n" || r.Temperature == nil || *r.Temperature != 0.7 || len(r.Stop) != 1 || r.Stop[0] != "END" {
		t.Errorf("%+v", r)
	}
}
