// Package e2e tests the system as a whole: a node in this process on a data
// directory of its own, real skill servers over MCP, the sandbox, and questions
// through the public HTTP API. Nothing in between is replaced but the model,
// where a test plays the language model itself.
package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"runtime/pprof"
	"strings"
	"testing"
	"time"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/agentic/model/offline"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/node"
	"aob.dev/writ/internal/testing/natstest"
	"aob.dev/writ/policies"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/jetstream"
)

func TestMain(m *testing.M) {
	_ = os.Unsetenv("OPENAI_API_KEY") // no test asks a model of somebody else
	natstest.Main()
	beWrit() // nor in a process that was started as the command line
	beCRM()
	code := m.Run()
	_ = os.RemoveAll(mortalDir)
	reportAttempts()
	if left := leaked(); code == 0 && left != "" {
		fmt.Fprintln(os.Stderr, "goroutines that did not end:\n"+left)
		code = 1
	}
	os.Exit(code)
}

// leaked are the goroutines of ours that are still there ten seconds after the
// last test.
func leaked() string {
	deadline := time.After(10 * time.Second)
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for {
		var all bytes.Buffer
		_ = pprof.Lookup("goroutine").WriteTo(&all, 1) // a buffer takes everything
		var left []string
		for g := range strings.SplitSeq(all.String(), "\n\n") {
			if strings.Contains(g, "aob.dev/writ/") && !strings.Contains(g, "TestMain") {
				left = append(left, g)
			}
		}
		if len(left) == 0 {
			return ""
		}
		select {
		case <-deadline:
			return strings.Join(left, "\n\n")
		case <-look.C:
		}
	}
}

// setup of a node; the zero value thinks offline and has no skills.
type setup struct {
	Dir     string      // empty: a temporary one
	Model   model.Model // nil: offline
	Skills  []string    // URLs or commands
	Agents  string      // directory; empty: the built-in ones
	Hosts   []string    // where remote agents may be
	Limits  node.Limits
	Routing catalog.Routing  // zero: as by default
	Step    time.Duration    // time limit of a step; 0: as by default
	Now     func() time.Time // nil: time.Now

	Extensions []policies.Extension // policies beside the embedded ones

	Unaudited string // why the test cannot end with the audit of what it leaves
}

// system is a running node and the key of its user "local", who may assert others.
type system struct {
	t    *testing.T
	node *node.Node
	dir  string
	url  string
	key  string

	skilled []string // data directories of who asks skill servers
	setup
}

// start opens a node and runs it until the test ends.
func start(t *testing.T, s setup) *system {
	t.Helper()
	if s.Dir == "" {
		s.Dir = t.TempDir()
	}
	if s.Model == nil {
		s.Model = offline.Model{}
	}
	if s.Now == nil {
		s.Now = time.Now
	}
	s.Skills = trusted(s.Skills)
	if inCell() {
		return startCell(t, s)
	}
	n, stop, err := node.Start(context.WithoutCancel(t.Context()), node.Config{ // t's own ends before the clean-up
		Dir: s.Dir, Documents: documents(s.Dir), Listen: "127.0.0.1:0", Skills: s.Skills, Agents: s.Agents, AgentHosts: s.Hosts, Model: s.Model, Limits: s.Limits, Routing: s.Routing, StepTime: s.Step, Now: s.Now, Policy: policies.Feed{Extensions: s.Extensions},
		Log: slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn})),
	})
	if err != nil {
		t.Fatal(err)
	}
	out := &system{t: t, node: n, dir: s.Dir, url: "http://" + n.Addr().String(), skilled: []string{s.Dir}, setup: s}
	t.Cleanup(func() { out.audited(stop) })
	if out.key, err = n.LocalKey(); err != nil {
		t.Fatal(err)
	}
	return out
}

// trusted are skill servers whose hints are trusted, unless a test disables that.
func trusted(servers []string) (out []string) {
	for _, s := range servers {
		if strings.HasPrefix(s, "trust=") { // the test says itself whether they do
			out = append(out, s)
			continue
		}
		if first, _, _ := strings.Cut(s, " "); !strings.Contains(first, "=") || strings.Contains(first, "://") {
			s = "-- " + s
		}
		out = append(out, "trust=true "+s)
	}
	return out
}

// person is who asks: an API key, and the user that it asserts.
type person struct{ key, user, session string }

// as is a user of tenant default, through the key of "local".
func (s *system) as(user string) person { return person{key: s.key, user: user} }

// problem is an error body (RFC 9457).
type problem struct {
	Code     intents.Code `json:"code"`
	Detail   string       `json:"detail"`
	IntentID string       `json:"intent_id"`
	PlanID   string       `json:"plan_id"`
}

// call asks the API and decodes the body into out, or, from 400 on, into the
// problem that it returns.
func (s *system) call(who person, method, path string, in, out any) (status int, p problem) {
	s.t.Helper()
	var body io.Reader
	if in != nil {
		raw, err := json.Marshal(in)
		if err != nil {
			s.t.Fatal(err)
		}
		body = bytes.NewReader(raw)
	}
	req, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, body)
	if err != nil {
		s.t.Fatal(err)
	}
	for name, value := range map[string]string{"Content-Type": "application/json", "X-Api-Key": who.key, "X-User-Id": who.user, "X-Session-Id": who.session} {
		if value != "" {
			req.Header.Set(name, value)
		}
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	if resp.StatusCode >= http.StatusBadRequest {
		out = &p
	}
	if out != nil {
		if err := json.Unmarshal(raw, out); err != nil {
			s.t.Fatalf("%s %s: HTTP %d: %v: %s", method, path, resp.StatusCode, err, raw)
		}
	}
	return resp.StatusCode, p
}

// event of a plan's trace.
type event struct {
	Type     string         `json:"event_type"`
	TaskID   string         `json:"task_id"`
	Payload  map[string]any `json:"payload"`
	Position int64          `json:"position"`
}

// intent is an intent of the journal with its outcome, nil while it is open.
type intent struct {
	state.Intent
	Outcome *intents.Outcome
}

// turn is everything that is known of a turn when it has ended.
type turn struct {
	HTTP      int              `json:"-"`
	PlanID    string           `json:"plan_id"`
	SessionID string           `json:"session_id"`
	Status    string           `json:"status"`
	Response  string           `json:"response"`
	Data      json.RawMessage  `json:"data"`
	Reason    string           `json:"reason"`
	Failure   *catalog.Failure `json:"failure"`

	Plan    catalog.PlanView `json:"-"`
	Events  []event          `json:"-"`
	Intents []intent         `json:"-"` // of the plan, by position
}

// ask runs a turn to its end and reads what became of it.
func (s *system) ask(who person, message string) turn {
	s.t.Helper()
	var out turn
	var p problem
	out.HTTP, p = s.call(who, http.MethodPost, "/agent/run", map[string]string{"message": message}, &out)
	return s.readTurn(who, message, out, p)
}

// readTurn reads what became of a turn.
func (s *system) readTurn(who person, message string, out turn, p problem) turn {
	s.t.Helper()
	if p.Code != "" {
		s.t.Fatalf("%s: %+v", message, p)
	}
	if status, p := s.call(who, http.MethodGet, "/agent/plans/"+out.PlanID, nil, &out.Plan); status != http.StatusOK {
		s.t.Fatalf("plan: HTTP %d %+v", status, p)
	}
	var trace struct {
		Events []event `json:"events"`
	}
	if status, p := s.call(who, http.MethodGet, "/agent/plans/"+out.PlanID+"/trace", nil, &trace); status != http.StatusOK {
		s.t.Fatalf("trace: HTTP %d %+v", status, p)
	}
	out.Events = trace.Events
	out.Intents = s.intents(out.PlanID)
	return out
}

// records of the journal, as they are now.
func (s *system) records() storage.Records {
	s.t.Helper()
	r := s.node.Records()
	if cell, ok := r.(*jetstream.Journal); ok {
		if err := cell.Fresh(s.t.Context()); err != nil {
			s.t.Fatal(err)
		}
	}
	return r
}

// intents reads the intents of a plan from the journal; empty: all of them.
func (s *system) intents(plan string) []intent {
	s.t.Helper()
	var out []intent
	at := map[int64]int{}
	for rec, err := range s.records().Scan(s.t.Context(), 0) {
		if err != nil {
			s.t.Fatal(err)
		}
		switch rec.Kind {
		case storage.KindIntent:
			sum, err := state.ReadIntent(rec)
			if err != nil {
				s.t.Fatal(err)
			}
			if plan == "" || sum.Context.PlanID == plan {
				at[rec.Position] = len(out)
				out = append(out, intent{Intent: sum})
			}
		case storage.KindOutcome:
			res, of, err := state.OutcomeOf(rec)
			if err != nil {
				s.t.Fatal(err)
			}
			if i, ok := at[of]; ok {
				out[i].Outcome = &res
			}
		default:
		}
	}
	if len(out) == 0 {
		s.t.Fatal(errors.New("the journal has no such intents"))
	}
	return out
}

// called are the intents of a type, in order.
func (t turn) called(typ string) []intent {
	var out []intent
	for _, o := range t.Intents {
		if o.Type == typ {
			out = append(out, o)
		}
	}
	return out
}

// events are the payloads of the events of a type, in order.
func (t turn) events(typ string) []map[string]any {
	var out []map[string]any
	for _, e := range t.Events {
		if e.Type == typ {
			out = append(out, e.Payload)
		}
	}
	return out
}
