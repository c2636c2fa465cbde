package state

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/storage"
)

// TestOlderForm: a log whose records have an older form is refused with one sentence.
func TestOlderForm(t *testing.T) {
	for name, payload := range map[string]string{"python": `{"actor":{"tenant":"a"},"intent":{"args":{},"type":"exec_python"}}`, "router": `{"actor":{"tenant":"a"},"intent":{"args":{},"type":"cancel"}}`} {
		parts := map[string]json.RawMessage{storage.PartInputs: json.RawMessage(`{}`)}
		for part, v := range map[string]any{
			storage.PartEnvelope: map[string]string{"payload": payload},
			storage.PartDecision: intents.Decision{Verdict: intents.Allow, Code: intents.OK, IntentID: intents.Digest(nil), Executor: name, Key: strings.Repeat("0", 32)},
		} {
			raw, err := json.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			parts[part] = raw
		}
		s := New()
		s.Observe(EntryOf(storage.NewRecord(storage.KindIntent, time.UnixMilli(0), parts)))
		if err := s.Err(); err == nil || !strings.Contains(err.Error(), "begin a new data directory") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
