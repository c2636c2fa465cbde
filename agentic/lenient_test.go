package agentic

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/state/agents"
)

func TestWithoutOdd(t *testing.T) {
	const closed = `{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":["string","null"]},"any":true,"rows":{"type":"array","items":{"type":"object","properties":{"x":{"type":"string"}},"additionalProperties":false}}},"required":["a"],"additionalProperties":false}`
	for _, tt := range []struct{ schema, args, want, dropped string }{
		{closed, `{"a":1}`, `{"a":1}`, ""},
		{closed, `{"a":1,"c":2}`, `{"a":1}`, "/c"},
		{closed, `{"a":1,"rows":null}`, `{"a":1}`, ""},
		{closed, `{"a":null,"b":null,"any":null}`, `{"a":null,"b":null,"any":null}`, ""}, // required, allowed, and anything
		{closed, `{"a":12345678901234567,"rows":[{"x":"y","z":1},{"x":null}]}`, `{"a":12345678901234567,"rows":[{"x":"y"},{}]}`, "/rows/z"},
		{strings.Replace(closed, `"required":["a"],"additionalProperties":false}`, `"required":["a"]}`, 1), `{"a":1,"c":2}`, `{"a":1,"c":2}`, ""},
		{`true`, `{"a":1}`, `{"a":1}`, ""},
	} {
		got, dropped := withoutOdd(json.RawMessage(tt.schema), json.RawMessage(tt.args))
		if string(got) != tt.want || strings.Join(dropped, " ") != tt.dropped {
			t.Errorf("%s: %s without %v, want %s without %s", tt.args, got, dropped, tt.want, tt.dropped)
		}
	}
}

// TestUnknownMembers: a pure skill is called without members that it does not know, and the model
// is told. A skill that changes something is not called: the model learns what it knows.
func TestUnknownMembers(t *testing.T) {
	schema := json.RawMessage(`{"type":"object","properties":{"order":{"type":"string"}},"additionalProperties":false}`)
	for effect, called := range map[catalog.Effect]int{catalog.Pure: 1, catalog.Idempotent: 0, catalog.Once: 0} {
		c := newCore(t)
		working(c)
		c.on("skill.load", done(catalog.Manifest{Name: "outlets", InputSchema: schema, Effect: effect}))
		_, m := worked(t, c, call("outlets", map[string]any{"order": "O-1", "dryrun": true}), giveUp)
		if n := len(c.ofType("skill.call")); n != called || n > 0 && strings.Contains(string(c.ofType("skill.call")[0].Args), "dryrun") {
			t.Errorf("%s: %d calls", effect, n)
		}
		if said := results(m.requests(agents.Executor)[1])[0]; !strings.Contains(said, "dryrun") || called == 1 != strings.Contains(said, `"note":"outlets does not know`) {
			t.Errorf("%s: the model is told %s", effect, said)
		}
	}
}

// TestOwnToolsUnknownMembers: so are tools of this system.
func TestOwnToolsUnknownMembers(t *testing.T) {
	c := newCore(t)
	skillsOf(c, []string{"outlets"})
	m := says(map[string][]any{agents.Planner: {call("find_relevant_skills", map[string]any{"query": "x", "limit": 3}), call("plan", map[string]any{"steps": nil, "answer": "Hello.", "thought": "short"})}})
	got := planner(c, m).plan(t.Context(), firstRequest(c), func(progress) {})
	if got.Answer != "Hello." || !slices.ContainsFunc(results(m.requests(agents.Planner)[1]), func(s string) bool { return strings.Contains(s, "/limit") }) {
		t.Errorf("%+v after %v", got, results(m.requests(agents.Planner)[1]))
	}
}
