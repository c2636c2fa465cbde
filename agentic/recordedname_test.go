package agentic

import (
	"encoding/json"
	"testing"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/state/agents"
)

// TestRecordHasTheSkillsName: a model calls a skill by the name that it was given, and the intent
// has its id.
func TestRecordHasTheSkillsName(t *testing.T) {
	c := newCore(t)
	working(c)
	c.on("skill.load", func(p placed) *intents.Answer {
		var args catalog.SkillLoad
		if err := json.Unmarshal(p.Args, &args); err != nil {
			t.Error(err)
		}
		return done(catalog.Manifest{Name: args.Skill, Endpoint: "crm", InputSchema: json.RawMessage(`{"type":"object"}`), Effect: catalog.Pure})(p)
	})
	m := says(map[string][]any{agents.Executor: {call("crm__write_memory", map[string]any{}), finishIt}})
	w := tasks(c, m)
	req := opened(c, w, time.Now().Add(time.Minute))
	req.Step.Skills = []string{"crm.list", "crm.write_memory"}
	if got := w.run(t.Context(), req); got.Status != taskDone {
		t.Fatalf("%+v", got)
	}
	var called catalog.SkillCall
	if err := json.Unmarshal(c.ofType("skill.call")[0].Args, &called); err != nil || called.Skill != "crm.write_memory" {
		t.Errorf("called %+v, error %v", called, err)
	}
	if got := c.ofType("skill.call")[0].Tool; got != "crm__write_memory" {
		t.Errorf("the intent says that the model called %q", got)
	}
	if got := c.ofType("step.finish")[0].Tool; got != "" {
		t.Errorf("an intent that no call made has the tool %q", got)
	}
	if got := m.received[0].Tools[0].Name; got != "list" {
		t.Errorf("the model was told of %s", got)
	}
}

// manifestOf is a skill of a server.
func manifestOf(server, name string) catalog.Manifest {
	return catalog.Manifest{Endpoint: server, Name: server + "." + name}
}
