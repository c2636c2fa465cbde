package agents

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/intents"
	"aob.dev/writ/state/document"
)

// mapFS is a directory of these files.
func mapFS(all map[string]string) fstest.MapFS {
	dir := fstest.MapFS{}
	for name, text := range all {
		dir[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return dir
}

func read(t *testing.T, all map[string]string) *Revision {
	t.Helper()
	r, err := Read(mapFS(all), environment)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRead(t *testing.T) {
	all := map[string]string{
		"agents/b.yaml":           "name: b\ndescription: ${EMPTY:-beta} of ${x} $HOME\n",
		"agents/a.yml":            "agent_id: a\ndisplay_name: A\ndescription: ${NONE:-}alpha\nendpoint: \"${URL:-http://localhost:8081}\"\ntype: mcp\nis_default: true\nconfidence_threshold: 0\nclarification_required: false\nexamples: [hello]\n",
		"agents/c.yaml":           "name: c\ndescription: d\nis_default: false\nconfidence_threshold: 1.0\n",
		"agents/general.yaml":     "name: mine\ndescription: d\ntemperature: ${HALF}\n",
		"agents/mine.yaml":        "name: client\ndescription: d\n",
		"agents/own.yaml":         "name: planner\ndescription: d\n",
		"agents/ours.yaml":        "name: general\ndescription: d\n",
		"agents/large.yaml":       "name: large\ndescription: d\n#" + strings.Repeat("x", document.MaxFile),
		"agents/.hidden.yaml":     "name: hidden\ndescription: d\n",
		"agents/README.md":        "no agent",
		"agents/old/x.yaml":       "name: x\ndescription: d\n",
		"prompts/voice.md":        "Be kind. ${NONE}\n",
		"skills/routing/skill.md": crmSkill,
		"skills/README.md":        "no skill",
		"writ.yaml":               "listen: x\n",
	}
	r := read(t, all)
	want := []string{
		"agents/c.yaml:4: /confidence_threshold: at 1 no request ever reaches the agent: lower it",
		"agents/large.yaml: left out, larger than 1 MB",
		"agents/mine.yaml: left out, client is a built-in agent: choose another name",
		"agents/ours.yaml: replaces the built-in agent general of the tenant to which it is pushed, once a second person has approved that",
		"agents/own.yaml: left out, planner is a built-in agent: choose another name",
	}
	if d := cmp.Diff(want, strings.Split(r.Notices.Error(), "\n")); d != "" {
		t.Errorf("notices (-want +got):\n%s", d)
	}
	names := slices.Sorted(maps.Keys(r.Files()))
	if d := cmp.Diff([]string{"agents/a.yml", "agents/b.yaml", "agents/c.yaml", "agents/general.yaml", "agents/ours.yaml", "prompts/voice.md", "skills/routing/skill.md"}, names); d != "" {
		t.Errorf("files (-want +got):\n%s", d)
	}
	a, _ := r.Agent("a")
	b, _ := r.Agent("b")
	mine, _ := r.Agent("mine")
	if a.Endpoint != "https://a.example/mcp" || a.Description != "alpha" || b.Description != "beta of ${x} $HOME" || *mine.Temperature != 0.5 {
		t.Errorf("%+v\n%+v\n%+v", a, b, mine)
	}
	if _, ok := r.Agent("hidden"); ok || string(r.Files()["prompts/voice.md"]) != "Be kind. ${NONE}\n" || string(r.Files()["skills/routing/skill.md"]) != crmSkill {
		t.Errorf("%q", r.Files())
	}
	if err := r.Check(); err != nil {
		t.Error(err)
	}
	shared, err := r.ForAll()
	if err != nil {
		t.Fatal(err)
	}
	want[3] = "agents/ours.yaml: left out, general is a built-in agent: replace it for one tenant, with writ registry push --tenant"
	slices.Sort(want)
	if d := cmp.Diff(want, slices.Sorted(slices.Values(strings.Split(shared.Notices.Error(), "\n")))); d != "" {
		t.Errorf("notices of a directory (-want +got):\n%s", d)
	}
	if _, ok := shared.Agent(General); ok || len(shared.Agents) != len(r.Agents)-1 {
		t.Errorf("a directory has %+v", shared.Agents)
	}
}

// TestReadTop: without a folder agents, the files of the directory are the agents.
func TestReadTop(t *testing.T) {
	r := read(t, map[string]string{"a.yaml": "name: a\ndescription: d\n", "notes.txt": "x"})
	if a, ok := r.Agent("a"); !ok || a.File != "a.yaml" {
		t.Errorf("%+v", a)
	}
	if r = read(t, nil); len(r.Agents) != 0 || r.Check() != nil {
		t.Errorf("%+v", r)
	}
}

// TestDigest: a revision is identified by its files, in any order, and a pushed revision opens
// as it was read.
func TestDigest(t *testing.T) {
	all := map[string]string{"agents/a.yaml": "name: a\ndescription: d\n", "agents/b.yaml": "name: b\ndescription: ${URL}\n", "prompts/p.md": "x"}
	r := read(t, all)
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(r.Files())) {
		lines = append(lines, fmt.Sprintf("%q:%q", name, intents.Digest(r.Files()[name])))
	}
	if want := intents.Digest([]byte("{" + strings.Join(lines, ",") + "}")); r.Digest() != want || len(lines) != 3 {
		t.Errorf("digest %s, want that of %s", r.Digest(), lines)
	}
	opened, err := open(r.Files())
	if err != nil || opened.Digest() != r.Digest() {
		t.Fatalf("%v, %v", opened, err)
	}
	if d := cmp.Diff(r.Scopes(), opened.Scopes()); d != "" {
		t.Errorf("(-read +opened):\n%s", d)
	}
	for _, change := range []map[string]string{
		{"agents/a.yaml": "name: a\ndescription: e\n"}, {"prompts/p.md": "y"}, {"prompts/q.md": "x"},
	} {
		changed := maps.Clone(all)
		maps.Copy(changed, change)
		if read(t, changed).Digest() == r.Digest() {
			t.Errorf("%v changes no digest", change)
		}
	}
}

// TestOpenRefuses: a pushed revision is refused for faults that a directory may have.
func TestOpenRefuses(t *testing.T) {
	for want, pushed := range map[string]map[string][]byte{
		"agents/a.yaml:1: /name: is the name of a built-in agent: choose another": {"agents/a.yaml": []byte("name: planner\ndescription: d\n")},
		"agents/a.yaml: is larger than 1 MB":                                      {"agents/a.yaml": []byte("name: a\ndescription: d\n#" + strings.Repeat("x", document.MaxFile))},
		"agents/a.yaml: is not UTF-8":                                             {"agents/a.yaml": []byte("name: a\ndescription: \xff\n")},
		"a.yml.md: is no file of a registry":                                      {"a.yml.md": []byte("name: a\ndescription: d\n")},
		"agents/../a.yaml: is no file of a registry":                              {"agents/../a.yaml": nil},
		"the files have more than 16 MB together":                                 tooMuch(),
		"what the agents may do, and the workflows, take more than 256 KiB":       tooMany(),
	} {
		if r, err := open(pushed); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, %v, want %s", r, err, want)
		}
	}
}

func tooMuch() map[string][]byte {
	all := map[string][]byte{}
	for i := range 17 {
		all[fmt.Sprintf("prompts/%d.md", i)] = make([]byte, document.MaxFile)
	}
	return all
}

func tooMany() map[string][]byte {
	all := map[string][]byte{}
	for i := range 100 {
		var text strings.Builder
		fmt.Fprintf(&text, "name: a%d\ndescription: d\ntools:\n", i)
		for j := range 60 {
			fmt.Fprintf(&text, "  - {server: crm, name: %s%d}\n", strings.Repeat("t", 60), j)
		}
		all[fmt.Sprintf("agents/%d.yaml", i)] = []byte(text.String())
	}
	return all
}

func TestScopes(t *testing.T) {
	text, err := os.ReadFile("testdata/shop.yaml")
	if err != nil {
		t.Fatal(err)
	}
	r := read(t, map[string]string{
		"agents/shop.yaml": string(text),
		"agents/any.yaml":  "name: any\ndescription: d\ntools: [{name: ask_agent}, {name: remind_me}]\nis_default: true\nconfidence_threshold: 0\nexamples: [x]\n",
		"agents/far.yaml":  "agent_id: far\ndisplay_name: F\ndescription: d\nendpoint: https://a.example\ntype: mcp\nis_default: false\nconfidence_threshold: 0.7\nclarification_required: true\nexamples: [x]\n",
	})
	if err := r.Check(); err != nil {
		t.Fatal(err)
	}
	got, err := json.MarshalIndent(r.Scopes(), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	const file = "testdata/golden/scopes.json"
	if *update {
		if err := os.WriteFile(file, append(got, '\n'), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), string(got)+"\n"); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	var back Scopes
	if err := json.Unmarshal(got, &back); err != nil {
		t.Fatal(err)
	}
	if _, err := Effective(BuiltinScopes(), back); err != nil {
		t.Errorf("what was recorded is judged otherwise: %v", err)
	}
}

// TestEffective: an agent hides those of its name below, and only the nearest default counts.
func TestEffective(t *testing.T) {
	agent := func(name, rest string) string { return "name: " + name + "\ndescription: d\n" + rest }
	const standard, routed = "is_default: true\nconfidence_threshold: 0\n", "is_default: false\nconfidence_threshold: 0.5\n"
	system := read(t, map[string]string{"a.yaml": agent("a", standard), "b.yaml": agent("b", "sub_agents: [c]\n"), "c.yaml": agent("c", routed)})
	tenant := read(t, map[string]string{"b.yaml": agent("b", "model: m\n"), "d.yaml": agent("d", standard)})
	set, err := Effective(BuiltinScopes(), system.Scopes(), tenant.Scopes())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range set.Agents {
		names = append(names, s.Name)
		if (s.Routing != nil && s.Routing.Default) != (s.Name == "d") {
			t.Errorf("%s has routing %+v", s.Name, s.Routing)
		}
		if own, _ := tenant.Agent(s.Name); s.Name == "b" && (s.Digest != own.Digest || s.SubAgents != nil) {
			t.Errorf("b is the system's: %+v", s)
		}
	}
	if want := "a b c classifier composer d dreaming-agent executor general planner producer sample-agent"; strings.Join(names, " ") != want {
		t.Errorf("the set has %v", names)
	}
	if system.Scopes().Agents[0].Routing.Default != true {
		t.Error("the layer below was changed")
	}
	// A push below can break the layer above: both must be judged together.
	if _, err := Effective(BuiltinScopes(), Scopes{}, read(t, map[string]string{"b.yaml": agent("b", "sub_agents: [c]\n")}).Scopes()); err == nil ||
		err.Error() != "agent b: /sub_agents/0: there is no agent c: add it, or take it from the list" {
		t.Errorf("got %v", err)
	}
	if _, err := Effective(BuiltinScopes(), Scopes{Agents: []Scope{{Name: Planner}, {Name: General}, {Name: "x"}, {Name: "x"}}}); err == nil || strings.Count(err.Error(), "\n") != 1 {
		t.Errorf("got %v", err)
	}
}

// FuzzParse: a definition is accepted or refused, and an accepted one is valid as written.
func FuzzParse(f *testing.F) {
	f.Add([]byte(rankerYAML))
	for _, d := range Builtins() {
		f.Add(d.Text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		a, err := Parse(text)
		if err != nil {
			return
		}
		b, err := New(*a)
		if err != nil {
			t.Fatalf("%+v: %v", a, err)
		}
		if a.System("") != b.System("") {
			t.Errorf("%+v became %+v", a, b)
		}
	})
}

// TestTypesAreBounded: tickets have room for the types of a revision.
func TestTypesAreBounded(t *testing.T) {
	file := func(bytes int) fstest.MapFS {
		return fstest.MapFS{"agents/a.yaml": {Data: []byte("name: a\ndescription: A.\nenrichers:\n" +
			"  - {domain_type: d, enricher_id: e, version: 1.0.0, schema: {title: " + strings.Repeat("x", bytes) + "}}\n")}}
	}
	if _, err := Read(file(maxTypes/2), environment); err != nil {
		t.Error(err)
	}
	if _, err := Read(file(maxTypes), environment); err == nil || !strings.Contains(err.Error(), "128 KiB") {
		t.Errorf("got %v", err)
	}
}

// TestServerOfATool: a tool without a server, or with an empty one, belongs to this system; so
// the two files may do the same.
func TestServerOfATool(t *testing.T) {
	r := read(t, map[string]string{
		"agents/a.yaml": "name: a\ndescription: d\ntools: [{name: search}, {name: search, server: crm}]\n",
		"agents/b.yaml": "name: b\ndescription: d\ntools: [{name: search, server: null}, {name: search, server: crm}]\n",
	})
	s := r.Scopes().Agents
	if len(s) != 2 || !slices.Equal(s[0].Types, s[1].Types) || !slices.Contains(s[0].Types, "memory.query") || !slices.Equal(s[0].Skills, []string{"crm.search"}) || !slices.Equal(s[1].Skills, s[0].Skills) {
		t.Errorf("%+v", s)
	}
}
