package audit_test

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"testing"

	"aob.dev/writ/audit"
	"aob.dev/writ/intents"
	"aob.dev/writ/storage"
)

// TestArgumentsOfAllKinds: the writer of a log may put anything into an accepted intent:
// no arguments crash the auditor.
func TestArgumentsOfAllKinds(t *testing.T) {
	w := newWorld(t)
	w.live(2)
	w.approvals()
	seen := map[string]bool{}
	for _, r := range w.Records() {
		var signed, payload map[string]any
		var d intents.Decision
		if r.Kind != storage.KindIntent || json.Unmarshal(r.Parts[storage.PartDecision], &d) != nil || d.Executor != "router" {
			continue
		}
		w.Must(json.Unmarshal(r.Parts[storage.PartEnvelope], &signed))
		w.Must(json.Unmarshal([]byte(signed["payload"].(string)), &payload))
		intent := payload["intent"].(map[string]any)
		typ, args := intent["type"].(string), intent["args"]
		if seen[typ] {
			continue
		}
		seen[typ] = true
		for _, changed := range variants(args) {
			intent["args"] = changed
			raw, err := json.Marshal(payload)
			w.Must(err)
			canonical, err := intents.Canonical(raw)
			w.Must(err)
			signed["payload"] = string(canonical)
			records := w.part(r.Position, storage.PartEnvelope, func(m map[string]any) { maps.Copy(m, signed) })
			var bad *audit.Bad
			if _, err := audit.Explain(t.Context(), audit.Source{Origin: w.Origin, Records: records}, "none", nil); !errors.Is(err, audit.ErrNotFound) && !errors.As(err, &bad) {
				t.Errorf("%s %s: %v", typ, canonical, err)
			}
		}
	}
	if len(seen) < 10 {
		t.Errorf("%d types", len(seen))
	}
}

// variants of a document: each of its values, one at a time, removed or changed.
func variants(doc any) (out []any) {
	out = []any{nil, "", -1e18, 0.5, []any{nil}, map[string]any{}}
	switch v := doc.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			without := maps.Clone(v)
			delete(without, name)
			out = append(out, without)
			for _, x := range variants(v[name]) {
				with := maps.Clone(v)
				with[name] = x
				out = append(out, with)
			}
		}
	case []any:
		for i := range v {
			for _, x := range variants(v[i]) {
				with := slices.Clone(v)
				with[i] = x
				out = append(out, with)
			}
		}
	}
	return out
}
