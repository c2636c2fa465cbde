package router_test

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"aob.dev/writ/internal/testing/routertest"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
)

// control appends a control record with this content.
func control(w *routertest.World, content string) {
	w.Helper()
	rec := storage.NewRecord(storage.KindControl, w.Clock.Now(), map[string]json.RawMessage{storage.PartControl: json.RawMessage(content)})
	_, err := w.Journal.Commit(w.Context(), storage.Commit{ID: rand.Text(), Entries: []storage.Entry{{Record: rec, Target: storage.NoPosition}}})
	w.Must(err)
}

// TestRulesOfAGenesis: a log is judged by the rules of its genesis; one that began under others, or
// under none, is not read, and no later record changes them.
func TestRulesOfAGenesis(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	var c state.Control
	w.Must(json.Unmarshal(w.Records()[0].Parts[storage.PartControl], &c))
	if c.Rules != 1 {
		t.Errorf("rules %d", c.Rules)
	}
	for _, rules := range []string{``, `"rules":0,`, `"rules":7,`, `"rules":-1,`} {
		other := routertest.NewEmpty(t, routertest.Options{})
		control(other, fmt.Sprintf(`{%s"genesis":%q}`, rules, *c.Genesis))
		if err := other.Router.Start(t.Context()); err == nil || !strings.Contains(err.Error(), "this build judges by rules 1 alone: use the build that began it, or begin a new data directory") {
			t.Errorf("%s: started: %v", rules, err)
		}
	}
	control(w, `{"rules":1}`)
	if err := w.Dir.Err(); err == nil || !strings.Contains(err.Error(), "the rules of a log are those of its genesis") {
		t.Errorf("rules in a later record: %v", err)
	}
}
