package agentic

import (
	"encoding/json"
	"testing"
	"time"

	"aob.dev/writ/agentic/agents"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

// TestRecordHasTheSkillsName: a model calls a skill by the name that it was told, and
// the order has its id.
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
	if err := json.Unmarshal(c.of("skill.call")[0].Args, &called); err != nil || called.Skill != "crm.write_memory" {
		t.Errorf("called %+v, error %v", called, err)
	}
	if got := m.asked[0].Tools[0].Name; got != "list" {
		t.Errorf("the model was told of %s", got)
	}
}

// of is a skill of a server.
func of(server, name string) catalog.Manifest {
	return catalog.Manifest{Endpoint: server, Name: server + "." + name}
}
