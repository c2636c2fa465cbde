package agents

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestBuiltin(t *testing.T) {
	all := Builtins()
	if len(all) != 8 {
		t.Errorf("%d built-in agents", len(all))
	}
	seen := map[string]bool{}
	for _, d := range all {
		a := Builtin(d.Name)
		if a.DisplayName == "" || seen[a.Instructions] || a.Routing != nil {
			t.Errorf("%s: %+v", a.Name, a)
		}
		seen[a.Instructions] = true
		if !strings.Contains(a.Instructions, "is data") {
			t.Errorf("%s is told %s", a.Name, a.Instructions)
		}
		if a.Limits != (Limits{DefaultRequests, DefaultTokens, MaxSeconds, MaxSeconds, DefaultFanOut}) {
			t.Errorf("%s has limits %+v", a.Name, a.Limits)
		}
	}
	if _, err := Effective(BuiltinScopes()); err != nil {
		t.Error(err)
	}
}

// TestExactAgents: no definition of these agents has a higher temperature.
func TestExactAgents(t *testing.T) {
	for _, name := range []string{Planner, Executor, Classifier, Producer} {
		if b := Builtin(name); b.Temperature == nil || *b.Temperature > 0.2 {
			t.Errorf("%s has temperature %v", name, b.Temperature)
		}
		for _, said := range []string{"", "temperature: 0.7\n", "temperature: 2\n"} {
			a, err := Parse([]byte("name: " + name + "\ndescription: d\n" + said))
			if err != nil || a.Temperature == nil || *a.Temperature != 0.2 {
				t.Errorf("%s with %q: %+v, %v", name, said, a, err)
			}
		}
	}
	a, err := Parse([]byte("name: other\ndescription: d\ntemperature: 0.7\n"))
	if err != nil || *a.Temperature != 0.7 {
		t.Errorf("%+v, %v", a, err)
	}
}

func TestGeneral(t *testing.T) {
	a := Builtin(General)
	if a.Structured || a.OutputSchema() != nil {
		t.Error("it is not conversational")
	}
	for _, part := range []string{"\nuser_intent: string\n", "\ntopic: string\n", "\nsearch_strategy: string\n", "\n## Tool Notes\n"} {
		if !strings.Contains(a.System(""), part) {
			t.Errorf("it is not told %q", part)
		}
	}
}

func TestDreamingAgent(t *testing.T) {
	a := Builtin(Dreaming)
	if !a.Structured || *a.Temperature != 0.7 || strings.Contains(a.System(""), "## ") {
		t.Errorf("%+v", a)
	}
	for _, title := range []string{`"title":"DreamMoment"`, `"title":"AffinityFragment"`} {
		if !strings.Contains(string(a.OutputSchema()), title) {
			t.Errorf("its result lacks %s", title)
		}
	}
}

func TestSampleAgent(t *testing.T) {
	a := Builtin(Sample)
	var names []string
	for _, tool := range a.Tools {
		names = append(names, tool.ID())
	}
	if d := cmp.Diff([]string{"search", "action", "ask_agent"}, names); d != "" || a.Structured {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestSystem(t *testing.T) {
	a := Builtin(Composer)
	if a.System(" \n") != a.Instructions {
		t.Error("an empty soul changes the prompt")
	}
	with := a.System("  You are Ada.\n")
	if !strings.HasPrefix(with, a.Instructions) || !strings.HasSuffix(with, "\nYou are Ada.\n") {
		t.Errorf("the soul does not follow the rules: %s", with)
	}
	if got := a.System(strings.Repeat("é", maxSoul)); len(got) > len(a.Instructions)+maxSoul+100 {
		t.Errorf("%d bytes of soul", len(got))
	}
}

var update = flag.Bool("update", false, "write the golden files")

// TestPrompts: the exact prompt of each built-in agent and of a declared one, and the schema of
// a structured result.
func TestPrompts(t *testing.T) {
	text, err := os.ReadFile("testdata/shop.yaml")
	if err != nil {
		t.Fatal(err)
	}
	shop, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "shop", shop, "You are Ada, and speak German.")
	for _, d := range Builtins() {
		golden(t, d.Name, d.Agent, "")
	}
}

// TestPage: the agent on the page is valid.
func TestPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/agents.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(page), "```yaml\n")
	text, _, _ = strings.Cut(text, "```")
	if a, err := Parse([]byte(text)); err != nil || a.Name != "shop" {
		t.Errorf("%+v, %v", a, err)
	}
}

func golden(t *testing.T, name string, a *Agent, soul string) {
	t.Helper()
	got := a.System(soul)
	if schema := a.OutputSchema(); schema != nil {
		indented, err := json.MarshalIndent(schema, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		got += "\n--- final_result ---\n" + string(indented) + "\n"
	}
	file := filepath.Join("testdata", "golden", name+".txt")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s (-want +got):\n%s", name, d)
	}
}

// TestOutputSchema: the prompt of a structured agent has no thinking notes, and the schema of
// its result does not repeat the prompt.
func TestOutputSchema(t *testing.T) {
	const text = "name: a\ndescription: The whole prompt.\nproperties:\n  n: {type: integer, description: How many}\n  note: {type: string}\n"
	a, err := Parse([]byte(text + "structured_output: true\nrequired: [n]\n"))
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"type":"object","properties":{"n":{"type":"integer","description":"How many"},"note":{"type":"string"}},"required":["n"],"additionalProperties":false}`
	if got := string(a.OutputSchema()); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := a.System(""); got != "The whole prompt.\n" {
		t.Errorf("it is told %s", got)
	}
	if a, err = Parse([]byte(text)); err != nil || a.OutputSchema() != nil || !strings.Contains(a.System(""), "## Thinking Structure") {
		t.Errorf("%+v, %v", a, err)
	}
}
