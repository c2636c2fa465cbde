package agentic

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/schemas"
	"aob.dev/writ/state/agents"
)

func TestWithoutUnknown(t *testing.T) {
	const row = `{"type":"object","properties":{"x":{"type":"string"}},"additionalProperties":false}`
	const closed = `{"type":"object","properties":{"a":{"type":"integer"},"rows":{"type":"array","items":` + row + `}},"required":["a"],"additionalProperties":false}`
	many := `{"a":1`
	var names []string
	for i := range 3 * schemas.MaxViolations {
		name := "odd" + string(rune('A'+i%26)) + strings.Repeat("x", i/26)
		names = append(names, "/"+name)
		many += `,"` + name + `":0`
	}
	slices.Sort(names)
	for _, tt := range []struct{ schema, args, want, dropped string }{
		{closed, `{"a":1}`, `{"a":1}`, ""},
		{closed, `{"a":1,"c":2}`, `{"a":1}`, "/c"},
		{closed, `{"a":12345678901234567,"rows":[{"x":"y","z":1},{"x":"v"}]}`, `{"a":12345678901234567,"rows":[{"x":"y"},{"x":"v"}]}`, "/rows/0/z"},
		{closed, `{"a.b":1,"a":1,"a~1*":2,"#":3,"0":4}`, `{"a":1}`, "/# /0 /a.b /a~01*"}, // names that a path would read otherwise
		{closed, `{"c":2}`, `{}`, "/c"}, // what is missing is judged afterwards
		{closed, many + `}`, `{"a":1}`, strings.Join(names, " ")},
		{strings.Replace(closed, `"required":["a"],"additionalProperties":false}`, `"required":["a"]}`, 1), `{"a":1,"c":2}`, `{"a":1,"c":2}`, ""},
		{`true`, `{"a":1}`, `{"a":1}`, ""},
	} {
		check, err := schemas.Compile(json.RawMessage(tt.schema))
		if err != nil {
			t.Fatal(err)
		}
		got, dropped := withoutUnknown(check, json.RawMessage(tt.args))
		slices.Sort(dropped)
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
	m := says(map[string][]any{agents.Planner: {call("find_relevant_skills", map[string]any{"query": "x", "limit": 3}), call("plan", map[string]any{"answer": "Hello.", "thought": "short"})}})
	got := planner(c, m).plan(t.Context(), firstRequest(c), func(progress) {})
	if got.Answer != "Hello." || !slices.ContainsFunc(results(m.requests(agents.Planner)[1]), func(s string) bool { return strings.Contains(s, "/limit") }) {
		t.Errorf("%+v after %v", got, results(m.requests(agents.Planner)[1]))
	}
}
