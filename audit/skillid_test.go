package audit_test

import (
	"testing"

	"aob.dev/writ/audit"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/storage"
)

// TestSkillIDsAreReplayed: an auditor finds the skill that an intent names by its tool, and
// a decision that was made on another one.
func TestSkillIDsAreReplayed(t *testing.T) {
	w := newWorld(t)
	for _, id := range []string{"git.log", "crm.close", "git.close"} {
		w.Pin(id, catalog.Pure)
	}
	task := w.Begun("p1", "log", "close").Started(1)
	at := *w.Want(task.Call("log", `{}`), intents.OK).Position

	r := w.verify(w.export(w.Journal, audit.Selection{}), audit.Options{Trust: w.trust(), Replay: true})
	if !r.OK || r.Unreplayable != 0 {
		t.Fatalf("%+v %v", r, r.FirstBad)
	}
	w.badAt(w.part(at, storage.PartInputs, func(m map[string]any) {
		m["skill"] = map[string]any{"name": "git.close", "digest": intents.Digest([]byte("git.close")), "effect": "pure"}
	}), at, "another pin of the skill", audit.Options{Replay: true})
}
