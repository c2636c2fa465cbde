package e2e

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
)

// reception is a model whose classifier returns the result set by a test, and whose agents answer
// with their name. Its composer asks in the given language.
type reception struct {
	*cast

	mu       sync.Mutex // guards the rest
	says     map[string]any
	requests []model.Request // of the classifier
}

func newReception() *reception {
	r := &reception{cast: &cast{}}
	r.parts = map[string]func(context.Context, model.Request) *model.Response{
		"classifier": func(_ context.Context, req model.Request) *model.Response {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.requests = append(r.requests, req)
			return replying(req, call("final_result", marshalled(r.says)))
		},
		"composer": func(_ context.Context, req model.Request) *model.Response {
			about := blockOf[struct{ For, Ask, Language string }](req, "Clarify")
			if about.Language != "de" || about.Ask != "Ask which account it is." || !strings.Contains(about.For, "passwords") {
				return nil
			}
			return &model.Response{Text: "Um welches Konto geht es?"}
		},
	}
	for name := range routertest.Desk {
		r.parts[name] = func(_ context.Context, req model.Request) *model.Response {
			if strings.Contains(req.System, "Sub-agents") {
				return nil
			}
			return &model.Response{Text: "This is " + name + "."}
		}
	}
	return r
}

func (r *reception) will(agent string, confidence float64, ambiguous bool, language string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.says = map[string]any{"intent_summary": "Wants something", "entities": map[string]string{}, "language": language, "agent": agent, "confidence": confidence, "ambiguous": ambiguous}
}

func (r *reception) classified() []model.Request {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.requests
}

// routed is the answer of POST /v1/request.
type routed struct {
	Status    string `json:"status"`
	Response  string `json:"response"`
	AgentID   string `json:"agent_id"`
	Decision  string `json:"decision"`
	PlanID    string `json:"plan_id"`
	SessionID string `json:"session_id"`
	Reason    string `json:"reason"`
	Complete  bool   `json:"workflow_complete"`
}

// startRouting is a system with three agents and a clock that a test moves.
func startRouting(t *testing.T, m model.Model, routing catalog.Routing) (s *system, ahead *atomic.Int64) {
	t.Helper()
	ahead = new(atomic.Int64)
	return start(t, setup{Model: m, Agents: routingFiles(t), Routing: routing, Now: func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }}), ahead
}

// routingFiles are the agents.
func routingFiles(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range routertest.Desk {
		if err := os.WriteFile(filepath.Join(dir, name+".yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// request sends a routed request.
func (s *system) request(session, input string) routed {
	s.t.Helper()
	var got routed
	in := map[string]string{"input": input, "employee_id": "ana", "entry_point": "ui"}
	if session != "" {
		in["session_id"] = session
	}
	if status, p := s.call(person{key: s.key}, http.MethodPost, "/v1/request", in, &got); status != http.StatusOK {
		s.t.Fatalf("HTTP %d %+v", status, p)
	}
	return got
}

// TestRoutingRequest: a request goes to the agent that the classifier is sure of, the next one of
// its session there without asking it, until the session's time is over; what nobody is for
// goes to the default.
func TestRoutingRequest(t *testing.T) {
	t.Parallel()
	m := newReception()
	s, ahead := startRouting(t, m, catalog.Routing{})
	m.will("password", 0.93, false, "en")
	first := s.request("", "Reset my password")
	if first.AgentID != "password" || first.Decision != "confident" || first.Response != "This is password." || first.Status != "complete" {
		t.Errorf("%+v", first)
	}
	table := blockOf[[]struct {
		Agent, Description string
		Examples           []string
		Default            bool
	}](m.classified()[0], "Agents")
	if len(table) != 3 || table[0].Agent != "front" || !table[0].Default || table[2].Examples[0] != "Reset my password" || table[2].Description == "" {
		t.Errorf("the classifier is told of %+v", table)
	}
	m.will("leave", 1, false, "en")
	if got := s.request(first.SessionID, "And my other one"); got.AgentID != "password" || got.Decision != "bypass" || len(m.classified()) != 1 {
		t.Errorf("%+v after %d classifications", got, len(m.classified()))
	}
	ahead.Store(int64(31 * time.Minute))
	if got := s.request(first.SessionID, "Book a day off"); got.AgentID != "leave" || got.Decision != "confident" {
		t.Errorf("after the session's time: %+v", got)
	}
	m.will("nobody", 1, false, "en")
	if got := s.request("", "Fly me to the moon"); got.AgentID != "front" || got.Decision != "unknown" {
		t.Errorf("for an agent that is not there: %+v", got)
	}
	m.will("front", 0.1, true, "en")
	if got := s.request("", "Hello"); got.AgentID != "front" || got.Decision != "direct" {
		t.Errorf("for the default: %+v", got)
	}
	m.will("front", 2, false, "en") // not of its form
	if got := s.request("", "Hello"); got.AgentID != "front" || got.Decision != "unknown" {
		t.Errorf("where the classifier errs: %+v", got)
	}
	var p problem
	for name, in := range map[string]map[string]string{
		"/input": {"employee_id": "ana"}, "/entry_point": {"input": "x", "entry_point": "a b"}, "/employee": {"input": "x", "employee": "ana"},
	} {
		var status int
		if status, p = s.call(person{key: s.key}, http.MethodPost, "/v1/request", in, nil); status != http.StatusBadRequest || p.Code != intents.SchemaInvalid {
			t.Errorf("%s: HTTP %d %+v", name, status, p)
		}
	}
}

// TestRoutingClarify: an ambiguous German request gets a question in German, once. The
// answer is classified with it, and goes to the agent or else to the default.
func TestRoutingClarify(t *testing.T) {
	t.Parallel()
	m := newReception()
	s, _ := startRouting(t, m, catalog.Routing{})
	for name, want := range map[string]struct {
		confidence      float64
		agent, decision string
	}{
		"clear":   {0.9, "password", "confident"},
		"unclear": {0.3, "front", "default"},
	} {
		t.Run(name, func(t *testing.T) {
			m.will("password", 0.6, false, "de")
			q := s.request("", "Ich komme nicht rein")
			if q.AgentID != "" || q.Decision != "clarify" || q.Response != "Um welches Konto geht es?" || q.Status != "complete" {
				t.Fatalf("%+v", q)
			}
			m.will("password", want.confidence, false, "de")
			got := s.request(q.SessionID, "Das von der Arbeit")
			if got.AgentID != want.agent || got.Decision != want.decision || got.Response != "This is "+want.agent+"." {
				t.Errorf("%+v", got)
			}
			asked := m.classified()
			before := blockOf[struct{ Message, Agent string }](asked[len(asked)-1], "Before")
			if before.Message != "Ich komme nicht rein" || before.Agent != "password" {
				t.Errorf("the classifier is told %+v", before)
			}
			if got := s.request(q.SessionID, "Danke"); got.AgentID != want.agent || got.Decision != "bypass" {
				t.Errorf("then %+v", got)
			}
		})
	}
}

// TestRoutingSwitches: without bypass each request is classified, and without clarification
// nobody is asked.
func TestRoutingSwitches(t *testing.T) {
	t.Parallel()
	m := newReception()
	s, _ := startRouting(t, m, catalog.Routing{TTLMinutes: 30})
	m.will("password", 0.2, false, "en")
	got := s.request("", "It does not work")
	if got.AgentID != "front" || got.Decision != "default" {
		t.Errorf("%+v", got)
	}
	m.will("leave", 0.9, false, "en")
	if got = s.request(got.SessionID, "Book a day off"); got.AgentID != "leave" || got.Decision != "confident" {
		t.Errorf("%+v", got)
	}
}

// TestRoutingOffline: the offline model routes by the words of descriptions and examples, and
// says that it does not know where two fit as well.
func TestRoutingOffline(t *testing.T) {
	t.Parallel()
	s, _ := startRouting(t, nil, catalog.Routing{})
	for input, want := range map[string]routed{
		"Reset my password":       {AgentID: "password", Decision: "confident"},
		"Book a holiday":          {AgentID: "leave", Decision: "confident"},
		"What is the weather":     {AgentID: "front", Decision: "direct"},
		"Book a password":         {AgentID: "front", Decision: "default"},
		"Unlock it in the office": {Decision: "clarify"},
	} {
		if got := s.request("", input); got.AgentID != want.AgentID || got.Decision != want.Decision {
			t.Errorf("%s: %+v", input, got)
		}
	}
}

// TestRoutingKilled: writ that is killed before the route is recorded has the request classified
// anew; behind it the plan goes on with the agent, and the classifier is not asked again.
func TestRoutingKilled(t *testing.T) {
	t.Parallel()
	for agent, classified := range map[string]int{"classifier": 2, "password": 1} {
		t.Run(agent, func(t *testing.T) {
			m := newReception()
			m.will("password", 0.9, false, "en")
			reached, end := make(chan struct{}), make(chan struct{})
			first, inner := true, m.parts[agent]
			m.parts[agent] = func(ctx context.Context, req model.Request) *model.Response {
				r := inner(ctx, req)
				if !first {
					return r
				}
				first = false
				close(reached)
				<-end // nobody hears what it says
				return r
			}
			_, skills := serveCRM(t)
			x := boot(t, m, skills)
			t.Cleanup(func() { close(end) }) // before the model's server is closed, which waits for it
			x.end(syscall.SIGTERM)
			x.args = append(x.args, "--agents", routingFiles(t))
			x.start()
			id := x.postTo("/v1/request", `{"input":"Reset my password","stream":true}`, accepted)
			<-reached
			x.kill()
			x.start()
			v := x.finished(id)
			if v.Status != catalog.PlanComplete || v.Agent != "password" || v.Response != "This is password." || v.Route.Decision != catalog.RouteConfident || len(m.classified()) != classified {
				t.Errorf("%d classifications, plan %+v", len(m.classified()), v)
			}
		})
	}
}
