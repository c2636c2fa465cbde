package agentic

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/bus"
)

// The soul of the user stands in what the manager's and the other roles' model
// is told.
func TestSoulIsInThePrompts(t *testing.T) {
	c := newCore(t)
	managed(c)
	c.on("soul.get", done(catalog.Soul{UserID: "ana", Persona: &catalog.Persona{Name: "Ada", SystemPrompt: "You speak like a pilot.", Tone: "calm", Language: "de"}}))
	m := wellDone()
	layer(c, m, allRoles...)
	handOut(c)
	shown(c)
	m.mu.Lock()
	defer m.mu.Unlock()
	composed := false
	for _, r := range m.asked {
		for _, says := range []string{"Ada", "You speak like a pilot.", "calm", "de"} {
			if !strings.Contains(r.Instructions, says) {
				t.Errorf("%s is not told %q", r.Purpose, says)
			}
		}
		composed = composed || r.Purpose == model.Compose
	}
	if !composed {
		t.Error("no answer was composed")
	}
}

// A script that gives too much is written anew, narrower, for the same data.
func TestOversizedOutputIsNarrowed(t *testing.T) {
	c := newCore(t)
	large(c, `{"name":"a"}`)
	c.on("exec_python", inTurn(outcome(intents.OversizedOutput, intents.Failed, false), printed(`{"count":10}`)))
	got, m := worked(t, c, model.ScriptOutput{Script: "print(everything)"}, model.ScriptOutput{Script: "print(10)"})
	if got.Status != taskDone {
		t.Fatalf("%+v", got)
	}
	if in := scriptInput(t, m, 1); !strings.Contains(in.Error, "OVERSIZED_OUTPUT") {
		t.Errorf("the model was told %q", in.Error)
	}
	for i, o := range c.of("exec_python") {
		var args catalog.ExecPython
		if err := json.Unmarshal(o.Args, &args); err != nil || args.From != "f1" {
			t.Errorf("run %d: %+v, error %v", i, args, err)
		}
	}
	// The data was looked at once, from its first line, twenty lines.
	var lines catalog.ReadLines
	if err := json.Unmarshal(c.of("read_lines")[0].Args, &lines); err != nil || lines != (catalog.ReadLines{FileID: "f1", Start: 0, N: 20}) {
		t.Errorf("%+v, error %v", lines, err)
	}
}

// taking is a bus that takes every order.
type taking struct {
	bus.Conn
	raw []byte
}

func (c *taking) Request(_ context.Context, _ string, raw []byte) ([]byte, error) {
	c.raw = raw
	return marshal(intents.Answer{Code: intents.OK}), nil
}

// Our orders may wait 120 seconds for acceptance, and their key names what is
// asked.
func TestReferenceValues(t *testing.T) {
	c := newCore(t)
	took := &taking{}
	s := manager(c)
	s.bus = took
	if _, err := claim(t, s, c.turn(), 1); err != nil {
		t.Fatal(err)
	}
	var sealed intents.Body
	if err := json.Unmarshal(took.raw, &sealed); err != nil {
		t.Fatal(err)
	}
	if k := sealed.Constraints; k.TTLSec != 120 || k.IdempotencyKey != intents.Fingerprint(sealed.Intent, "ana", *sealed.Context) {
		t.Errorf("%+v", k)
	}
}
