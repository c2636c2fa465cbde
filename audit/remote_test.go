package audit_test

import (
	"encoding/json"
	"strings"
	"testing"

	"aob.dev/writ/audit"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/storage"
)

// TestRemoteAgentReplayed: a log with a call of a remote agent verifies and is decided the
// same, although another revision is in force by then; a decision by another pin is found.
func TestRemoteAgentReplayed(t *testing.T) {
	w := newWorld(t)
	w.PushAgents(1, map[string]string{"help": helpAgent})
	task := w.BegunAgent("p1", "help").Started(1)
	w.PushAgents(2, map[string]string{"help": strings.Replace(helpAgent, "help.example", "other.example", 1)})
	o := task.Intent("skill.call", catalog.SkillCall{Skill: helpSkill, Input: json.RawMessage(`{"raw_input":"Hello"}`)})
	o.Ctx.Call = "1.0"
	at := *w.Want(w.Do(o), intents.OK).Position

	r := w.verify(w.export(w.Journal, audit.Selection{}), audit.Options{Trust: w.trust(), Replay: true})
	if !r.OK || r.Unreplayable != 0 {
		t.Fatalf("%+v %v", r, r.FirstBad)
	}
	for name, value := range map[string]any{"kind": nil, "digest": intents.Digest([]byte("other"))} {
		w.badAt(w.part(at, storage.PartInputs, func(m map[string]any) {
			skill := m["skill"].(map[string]any)
			if skill[name] = value; value == nil {
				delete(skill, name)
			}
		}), at, "another pin of the skill", audit.Options{Replay: true})
	}
}
