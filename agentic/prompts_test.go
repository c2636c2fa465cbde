package agentic

import (
	"context"
	"encoding/json"
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
// the user's message.
func TestContext(t *testing.T) {
	now := time.Date(2026, 3, 1, 9, 30, 0, 0, time.UTC)
	r := request(agents.Builtin(agents.Planner), "", theTurn, now, "[Task]\nHello")
	want := []model.Message{
		{Role: model.RoleSystem, Text: "[Context]\nDate: Sunday, 2026-03-01\nTime: 09:30:00 UTC\nUser ID: ana\nSession: sess_1\nAgent: planner"},
		{Role: model.RoleUser, Text: "[Task]\nHello"},
	}
	if d := cmp.Diff(want, r.Messages); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if r.System != agents.Builtin(agents.Planner).Instructions || r.Temperature == nil || *r.Temperature != 0 {
		t.Errorf("%+v", r)
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
