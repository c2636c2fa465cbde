package eval

import (
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// caseOf is the one case of a text.
func caseOf(t *testing.T, text string) Case {
	t.Helper()
	sets, err := Read(fstest.MapFS{"a.yaml": {Data: []byte("cases:\n  - " + text + "\n")}})
	if err != nil {
		t.Fatal(err)
	}
	return sets[0].Cases[0]
}

func TestJudge(t *testing.T) {
	done := func(answer string, tools ...string) Outcome {
		return Outcome{Status: "complete", Answer: answer, Tools: tools}
	}
	for _, tt := range []struct {
		name, text string
		outcome    Outcome
		wrong      []string
	}{
		{"all that is asked", `{message: m, tools: [a, b], answer: {contains: [OSLO], matches: '\d+'}}`, done("Oslo: 7", "crm.a", "b", "a"), nil},
		{"another order", `{message: m, tools: [a, b]}`, done("", "b", "a"), []string{"tools: b, a, not a, b"}},
		{"one more", `{message: m, tools: [a]}`, done("", "a", "b"), []string{"tools: a, b, not a"}},
		{"one at all", `{message: m, tools: []}`, done("", "b"), []string{"tools: b, not none"}},
		{"a longer name", `{message: m, tools: [ticket]}`, done("", "close_ticket"), []string{"tools: close_ticket, not ticket"}},
		{"counts", `{message: m, tools: {a: 2, b: 1+, c: 0+}}`, done("", "b", "a", "b", "crm.a"), nil},
		{"wrong counts", `{message: m, tools: {a: 2, b: 2+}}`, done("", "a", "b", "a", "a", "c"), []string{"a was called 3 times, not 2", "b was called 1 times, not 2 or more", "c was called, too"}},
		{"answer", `{message: m, answer: {contains: [x], matches: '^y'}}`, done("z"), []string{`the answer does not have "x"`, `the answer does not match "^y"`}},
		{"failed", `{message: m}`, Outcome{Status: "failed", Answer: "no"}, []string{"the plan is failed: no"}},
		{"waits", `{message: m, refused: true}`, Outcome{Status: "held"}, []string{"the plan is held: "}},
		{"refused", `{message: m, refused: true}`, Outcome{Status: "failed"}, nil},
		{"refused in words", `{message: m, refused: true}`, done("I cannot"), nil},
		{"done all the same", `{message: m, refused: true}`, done("gone", "a"), []string{"was done: a"}},
		{"agents", `{message: m, agents: [x, y]}`, Outcome{Status: "complete", Agents: []string{"y", "x"}}, nil},
		{"other agents", `{message: m, agents: [x]}`, Outcome{Status: "complete", Agents: []string{"y"}}, []string{"agents: y, not x"}},
	} {
		if d := cmp.Diff(tt.wrong, caseOf(t, tt.text).Judge(tt.outcome)); d != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, d)
		}
	}
}

// TestPairs: each change from one agent to another has a rate, which must not be below
// the threshold, and changes that no case is about are named.
func TestPairs(t *testing.T) {
	change := func(from, to string) Case {
		return Case{Message: "m", History: []Turn{{Message: "h", Agents: []string{from}}}, Agents: []string{to}}
	}
	by := func(agents ...string) Outcome { return Outcome{Status: "complete", Agents: agents} }
	for _, least := range []float64{0.5, 0.6} {
		r := NewReport(least)
		half := 0.5
		r.Begin(Set{File: "a.yaml", Min: &half})
		r.Add(change("shop", "support"), by("support"))
		r.Add(change("shop", "support"), by("shop"))
		r.Add(change("support", "rewards"), by("rewards"))
		r.End()
		want := []Rate{{"shop → support", 2, 1, 0.5, least}, {"support → rewards", 1, 1, 1, least}}
		if d := cmp.Diff(want, r.Pairs); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
		if d := cmp.Diff([]string{"rewards → shop", "rewards → support", "shop → rewards", "support → shop"}, r.Missing); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
		if r.OK != (least == 0.5) || r.All.Good != 2 || r.All.Cases != 3 {
			t.Errorf("at %v: %v, %+v", least, r.OK, r.All)
		}
	}
}

// TestThresholds: a set's own threshold counts in place of the command's.
func TestThresholds(t *testing.T) {
	good, bad := Outcome{Status: "complete"}, Outcome{Status: "failed"}
	for _, tt := range []struct {
		own  *float64
		want bool
	}{{nil, false}, {new(0.5), true}, {new(0.51), false}} {
		r := NewReport(0.9)
		r.Begin(Set{File: "a.yaml", Min: tt.own})
		r.Add(Case{}, good)
		r.Add(Case{}, bad)
		r.Begin(Set{File: "b.yaml"})
		r.Add(Case{}, good)
		if r.End(); r.OK != tt.want {
			t.Errorf("%v: %v", r.Sets, r.OK)
		}
	}
}

// TestPage: the set that docs/eval.md shows is one.
func TestPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/eval.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(page), "```yaml\n")
	text, _, _ := strings.Cut(after, "```")
	sets, err := Read(fstest.MapFS{"a.yaml": {Data: []byte(text)}})
	if err != nil || len(sets[0].Cases) != 4 || *sets[0].Min != 0.9 {
		t.Errorf("%+v, error %v", sets, err)
	}
}

func TestReadRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"":                                     "a.yaml: cases is missing or empty",
		"cases: []":                            "a.yaml: cases is missing or empty",
		"min: 2\ncases: [{message: m}]":        "a.yaml: min is from 0 to 1",
		"cases:\n- message: m\n- tool: [a]":    "line 3: field tool not found",
		"cases: [{message: ' '}]":              "case 1: message is missing",
		"case: [{message: m}]":                 "field case not found",
		"cases: [{message: m, tools: {a: x}}]": `line 1: "x" is no count`,
		"cases: [{message: m, answer: {matches: '('}}]":   "case 1: matches: error parsing regexp",
		"cases: [{message: m, answer: {contain: [a]}}]":   "field contain not found",
		"cases: [{message: m, history: [{question: m}]}]": "field question not found",
	} {
		if _, err := Read(fstest.MapFS{"a.yaml": {Data: []byte(text)}}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, err := Read(fstest.MapFS{}); err == nil {
		t.Error("a directory without cases was read")
	}
}
