package catalog_test

import (
	"encoding/json"
	"strings"
	"testing"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

// TestRowKey: reads have a random key, and all else has its fingerprint, which neither
// the form of the arguments nor the task changes.
func TestRowKey(t *testing.T) {
	at := intents.Context{SessionID: "s", TurnID: "t", PlanID: "p", Revision: 1, Step: 2, TaskID: "task_1"}
	rows := catalog.Builtin().Rows()
	if len(rows) == 0 {
		t.Fatal("no rows")
	}
	for _, row := range rows {
		a, b := row.Key(json.RawMessage(`{}`), "ana", at), row.Key(json.RawMessage(`{ }`), "ana", at)
		random := (row.Effect == catalog.Pure || row.RandomKey) && row.Type != "skill.load" // by a task
		if random != (a != b) || random != strings.HasPrefix(a, "rnd_") {
			t.Errorf("%s (%s): %s and %s", row.Type, row.Effect, a, b)
		}
	}
	key := func(typ, args string, at intents.Context) string {
		row, ok := catalog.Builtin().Lookup(typ)
		if !ok {
			t.Fatalf("no type %s", typ)
		}
		return row.Key(json.RawMessage(args), "ana", at)
	}
	for _, typ := range []string{"read_memory", "read_lines", "skill.find"} {
		if k := key(typ, `{}`, at); !strings.HasPrefix(k, "rnd_") {
			t.Errorf("%s: key %s", typ, k)
		}
	}
	if k := key("skill.load", `{}`, intents.Context{PlanID: "p"}); !strings.HasPrefix(k, "rnd_") {
		t.Errorf("a planner's skill.load: key %s", k)
	}
	base := key("skill.call", `{"skill":"a","n":1.0}`, at)
	if want := intents.Fingerprint(intents.Spec{Type: "skill.call", Args: json.RawMessage(`{"n":1,"skill":"a"}`)}, "ana", at); base != want {
		t.Errorf("key %s is not the fingerprint %s", base, want)
	}
	other := at
	other.TaskID = "task_2"
	if k := key("skill.call", `{"skill":"a","n":1}`, other); k != base {
		t.Errorf("the same intent of another task has the key %s", k)
	}
	other.Revision = 2
	if k := key("skill.call", `{"skill":"a","n":1}`, other); k == base {
		t.Error("the intent of another revision has the same key")
	}
}
