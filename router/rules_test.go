package router_test

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"aob.dev/writ/intents"
	"aob.dev/writ/router/routertest"
	"aob.dev/writ/storage"
)

// control appends a control record with this content.
func control(w *routertest.World, content string) {
	w.Helper()
	rec := storage.NewRecord(storage.KindControl, w.Clock.Now(), map[string]json.RawMessage{storage.PartControl: json.RawMessage(content)})
	_, err := w.Journal.Commit(w.Context(), storage.Commit{ID: rand.Text(), Entries: []storage.Entry{{Record: rec, Of: storage.Nobody}}})
	w.Must(err)
}

// TestNewLogsHaveTheCurrentRules: the genesis says them.
func TestNewLogsHaveTheCurrentRules(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	if got := w.Dir.View().Rules(); got != intents.CurrentRules || len(w.Records()) != 1 {
		t.Errorf("rules %d in %d records", got, len(w.Records()))
	}
}

// TestOldLogsGetTheCurrentRules: the first start of a newer build says so, once.
func TestOldLogsGetTheCurrentRules(t *testing.T) {
	w := routertest.NewOld(t, routertest.Options{})
	if got := w.Dir.View().Rules(); got != intents.RulesFirst {
		t.Fatalf("rules %d before the start", got)
	}
	w.Must(w.Router.Start(t.Context()))
	w.Must(w.Router.Start(t.Context()))
	recs := w.Records()
	if len(recs) != 2 || string(recs[1].Parts[storage.PartControl]) != fmt.Sprintf(`{"rules":%d}`, intents.CurrentRules) {
		t.Fatalf("%d records, the last one %s", len(recs), recs[len(recs)-1].Parts[storage.PartControl])
	}
	if got := w.Dir.View().Rules(); got != intents.CurrentRules {
		t.Errorf("rules %d after the start", got)
	}
}

// TestRulesOfANewerBuild: a log under rules that this build does not know is not
// judged by it.
func TestRulesOfANewerBuild(t *testing.T) {
	w := routertest.NewOld(t, routertest.Options{})
	control(w, fmt.Sprintf(`{"rules":%d}`, intents.CurrentRules+1))
	if err := w.Router.Start(t.Context()); err == nil || !strings.Contains(err.Error(), "use the build that wrote them or a newer one") {
		t.Errorf("started: %v", err)
	}
}

// TestRulesNeverDecrease: a record that takes rules back cannot be folded.
func TestRulesNeverDecrease(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	control(w, `{"rules":1}`)
	if w.Dir.Err() == nil {
		t.Error("rules 1 after the current ones are folded")
	}
}
