package agentic

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/state/agents"
)

// TestLimits: an agent that has used up its requests or tokens gets one last request, with its
// outputs alone; then it ends, with an output or without.
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
		calls   int
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
			l := loop{model: m, log: slog.New(slog.DiscardHandler), agent: a, req: model.Request{Agent: "a"}, tools: []*tool{offer("look", false), offer("end", true)}}
			if _, err := l.run(t.Context()); !errors.Is(err, tt.err) {
				t.Errorf("got %v", err)
			}
			all := m.requests("a")
			if len(all) != tt.calls {
				t.Fatalf("%d requests", len(all))
			}
			if last := all[len(all)-1].Tools; tt.calls == 3 && (len(last) != 1 || last[0].Name != "end") {
				t.Errorf("the last request offers %+v", last)
			}
		})
	}
}

// TestFailsAgain: a call that fails three times, with no success between, ends the work like a limit.
// What a model was told to repeat later is no failure.
func TestFailsAgain(t *testing.T) {
	look, other, fine, end := call("look", map[string]int{"n": 1}), call("look", map[string]int{"n": 2}), call("fine", struct{}{}), call("end", struct{}{})
	for name, tt := range map[string]struct {
		code    intents.Code
		replies []any
		calls   int
	}{
		"one call":               {intents.ExecutorFailed, []any{look, look, look, end}, 4},
		"in turn with another":   {intents.ExecutorFailed, []any{look, other, look, other, look, end}, 6},
		"refused":                {intents.PolicyDenied, []any{look, look, look, end}, 4},
		"an unknown tool":        {intents.OK, []any{call("no", struct{}{}), call("no", struct{}{}), call("no", struct{}{}), end}, 4},
		"successes between":      {intents.ExecutorFailed, []any{look, look, fine, look, look, end}, 6},
		"other arguments":        {intents.ExecutorFailed, []any{look, look, other, other, end}, 5},
		"only to wait":           {intents.RateLimited, []any{look, look, look, look, end}, 5},
		"beside one that works":  {intents.ExecutorFailed, []any{[]model.Call{look, fine}, []model.Call{look, fine}, []model.Call{look, fine}, []model.Call{look, fine}, end}, 5},
		"and then for ever more": {intents.ExecutorFailed, []any{look}, 4},
	} {
		t.Run(name, func(t *testing.T) {
			a, err := agents.New(agents.Agent{Name: "a", Description: "d"})
			if err != nil {
				t.Fatal(err)
			}
			offer := func(name string, output bool, err error) *tool {
				return newTool(tool{
					Tool: model.Tool{Name: name, Schema: json.RawMessage(`{"type":"object","properties":{"n":{}}}`)}, output: output,
					call: func(context.Context, string, json.RawMessage) (any, error) { return "done", err },
				})
			}
			failed := &IntentError{Type: "skill.call", Answer: &intents.Answer{Code: tt.code, Reason: "no"}}
			m := says(map[string][]any{"a": tt.replies})
			l := loop{model: m, log: slog.New(slog.DiscardHandler), agent: a, req: model.Request{Agent: "a"}, tools: []*tool{offer("look", false, failed), offer("fine", false, nil), offer("end", true, nil)}}
			if _, err := l.run(t.Context()); err != nil && (len(tt.replies) > 1 || !errors.Is(err, errAgain)) {
				t.Errorf("got %v", err)
			}
			if n := len(m.requests("a")); n != tt.calls {
				t.Errorf("%d requests, want %d", n, tt.calls)
			}
		})
	}
}

// TestTimeLimit: an agent that has used up its time is asked once more, with its outputs alone.
// Running calls are not cut off.
func TestTimeLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, err := agents.New(agents.Agent{Name: "a", Description: "d", Limits: agents.Limits{Seconds: 10}})
		if err != nil {
			t.Fatal(err)
		}
		m := says(map[string][]any{"a": {call("look", struct{}{}), call("look", struct{}{}), call("end", struct{}{})}})
		offer := func(name string, output bool, takes time.Duration) *tool {
			return newTool(tool{
				Tool: model.Tool{Name: name, Schema: json.RawMessage(`{"type":"object"}`)}, output: output,
				call: func(context.Context, string, json.RawMessage) (any, error) { time.Sleep(takes); return "done", nil },
			})
		}
		l := loop{model: m, log: slog.New(slog.DiscardHandler), agent: a, req: model.Request{Agent: "a"}, tools: []*tool{offer("look", false, 6*time.Second), offer("end", true, 0)}}
		began := time.Now()
		if _, err := l.run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took != 12*time.Second || l.busy != took {
			t.Errorf("the model and the calls are said to have had %s of %s", l.busy, took)
		}
		all := m.requests("a")
		if len(all) != 3 || len(all[2].Tools) != 1 || all[2].Tools[0].Name != "end" {
			t.Fatalf("asked were %+v", all)
		}
		if got := results(all[2]); len(got) != 2 || got[1] != `"done"` {
			t.Errorf("results %v", got)
		}
	})
}

// TestDeclaredTools: the tools of this system offered to the planner and the executor are those
// that their definitions declare. Tools that end a run without an intent, and the skills of a
// step, are not among them.
func TestDeclaredTools(t *testing.T) {
	m := wellDone()
	c := newCore(t)
	skillsOf(c, []string{"outlets"})
	planner(c, m).plan(t.Context(), firstRequest(c), func(progress) {})
	c = newCore(t)
	working(c)
	w := tasks(c, m)
	w.run(t.Context(), opened(c, w, time.Now().Add(time.Minute)))
	for agent, others := range map[string][]string{agents.Planner: {"plan", "outlets"}, agents.Executor: {"insufficient", "outlets"}} {
		var declared, offered []string
		for _, t := range agents.Builtin(agent).Tools {
			declared = append(declared, t.ID())
		}
		for _, tool := range m.requests(agent)[0].Tools {
			if !slices.Contains(others, tool.Name) {
				offered = append(offered, tool.Name)
			}
		}
		slices.Sort(declared)
		slices.Sort(offered)
		if d := cmp.Diff(declared, offered); d != "" {
			t.Errorf("%s (-declared +offered):\n%s", agent, d)
		}
	}
}

// TestRequestOfAgent: the model settings of a definition go with each request.
func TestRequestOfAgent(t *testing.T) {
	a, err := agents.Parse([]byte("name: a\ndescription: You count.\ntemperature: 0.7\nstop: [END]\nmax_tokens: 900\neffort: low\nparallel_calls: false\n"))
	if err != nil {
		t.Fatal(err)
	}
	r := request(a, "", theTurn, time.Now(), "[Task]\nHello")
	if r.System != "You count.\n" || r.Temperature == nil || *r.Temperature != 0.7 || len(r.Stop) != 1 || r.Stop[0] != "END" || r.MaxTokens != 900 || r.Effort != "low" || r.Parallel == nil || *r.Parallel {
		t.Errorf("%+v", r)
	}
}

// TestStepTime: steps and built-in agents take their time from the settings, and an agent that one of
// these asks may take a fifth of it.
func TestStepTime(t *testing.T) {
	for set, want := range map[time.Duration]time.Duration{0: DefaultStepTime, 10 * time.Second: 10 * time.Second, time.Hour: time.Hour} {
		cfg := Config{StepTime: set}
		for _, a := range agents.Builtins() {
			got, err := cfg.definition(catalog.AgentGetResult{Agent: a.Name})
			if err != nil || cfg.stepTime() != want || got.Limits.Time() != want || got.Limits.AskSeconds != int(want/time.Second)/5 {
				t.Errorf("%s at %s: %+v, error %v", a.Name, set, got.Limits, err)
			}
		}
	}
	if l := agents.Builtin(agents.Planner).Limits; l.Time() != time.Hour {
		t.Errorf("the definition itself has changed: %+v", l)
	}
}
