package agentic

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/bus"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/state/agents"
)

// The user's soul is in the prompts of the manager's and the other roles' models.
func TestSoulIsInThePrompts(t *testing.T) {
	c := newCore(t)
	managed(c)
	c.on("soul.get", done(catalog.Soul{UserID: "ana", Persona: &catalog.Persona{Name: "Ada", SystemPrompt: "You speak like a pilot.", Tone: "calm", Language: "de"}}))
	m := wellDone()
	layer(c, m, allRoles...)
	dispatchTurn(c)
	shown(c)
	m.mu.Lock()
	defer m.mu.Unlock()
	asked := map[string]bool{}
	for _, r := range m.received {
		asked[r.Agent] = true
		for _, says := range []string{"Ada", "You speak like a pilot.", "calm", "de"} {
			if !strings.Contains(r.System, says) {
				t.Errorf("%s is not told %q", r.Agent, says)
			}
		}
	}
	if len(asked) != 3 {
		t.Errorf("asked were %v", asked)
	}
}

// TestContext: every agent receives the time, user, place and identity for which it works, before
// the user's message. All but the time stands in what turns have in common.
func TestContext(t *testing.T) {
	now := time.Date(2026, 3, 1, 9, 30, 0, 0, time.UTC)
	r := request(agents.Builtin(agents.Planner), "", theTurn, now, "[Task]\nHello")
	want := []model.Message{
		{Role: model.RoleSystem, Text: "[Context]\nUser ID: ana\nSession: sess_1\nAgent: planner"},
		{Role: model.RoleUser, Note: "Date: Sunday, 2026-03-01\nTime: 09:30 UTC", Text: "[Task]\nHello"},
	}
	if d := cmp.Diff(want, r.Messages); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if r.System != agents.Builtin(agents.Planner).Instructions || r.Temperature == nil || *r.Temperature != 0 {
		t.Errorf("%+v", r)
	}
}

// TestTurnsShareTheirBeginning: what a server reads of two turns of a session is the same up to
// where the history of the second goes on, whatever the time, so that its cache of prompts serves both.
func TestTurnsShareTheirBeginning(t *testing.T) {
	var sent []byte
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	defer srv.Close()
	remote, err := model.NewOpenAI(model.OpenAIConfig{BaseURL: srv.URL, Model: "m", Sent: func(body []byte) { sent = body }})
	if err != nil {
		t.Fatal(err)
	}
	first := theTurn
	first.History = []catalog.ChatMessage{{Role: catalog.SpeakerUser, Content: "Hello."}, {Role: catalog.SpeakerAgent, Content: "Yes?"}}
	first.Before = &catalog.TurnSummary{Agents: []string{"shop"}}
	second := first
	second.History = append(slices.Clone(first.History), catalog.ChatMessage{Role: catalog.SpeakerUser, Content: "How many?"}, catalog.ChatMessage{Role: catalog.SpeakerAgent, Content: "Two."})
	second.Before = &catalog.TurnSummary{Agents: []string{"rewards"}}
	for _, name := range []string{agents.Planner, agents.General} {
		var bodies [2]string
		for i, turn := range []Turn{first, second} {
			_, _ = remote.Respond(t.Context(), request(agents.Builtin(name), "", turn, time.Unix(0, 0).Add(time.Duration(i)*time.Hour), "How many?"), nil) // it gets no answer
			bodies[i] = string(sent)
		}
		shared, _, ok := strings.Cut(bodies[0], `{"content":"Date: Thursday, 1970-01-01\nTime: 00:00 UTC\n`)
		if !ok || !strings.HasPrefix(bodies[1], shared) || !strings.Contains(shared, "Yes?") {
			t.Errorf("%s:\n%s\n%s", name, bodies[0], bodies[1])
		}
	}
}

// taking is a bus that accepts every intent.
type taking struct {
	bus.Conn
	raw []byte
}

func (c *taking) Request(_ context.Context, _ string, raw []byte) ([]byte, error) {
	c.raw = raw
	return marshal(intents.Answer{Code: intents.OK}), nil
}

// Our intents may wait 120 seconds for acceptance, and their key identifies their content.
func TestReferenceValues(t *testing.T) {
	c := newCore(t)
	took := &taking{}
	s := manager(c)
	s.bus = took
	if _, err := claim(t, s, c.turn(), 1); err != nil {
		t.Fatal(err)
	}
	var signed intents.Body
	if err := json.Unmarshal(took.raw, &signed); err != nil {
		t.Fatal(err)
	}
	if k := signed.Constraints; k.TTLSec != 120 || k.IdempotencyKey != intents.Fingerprint(signed.Intent, "ana", *signed.Context) {
		t.Errorf("%+v", k)
	}
}
