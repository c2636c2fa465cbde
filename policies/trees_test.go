package policies_test

import (
	"strings"
	"testing"

	"aob.dev/writ/policies"
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// tried is a tree with an untrusted file.
func tried(name, text string) policies.Source {
	s := policies.Embedded()
	s[name] = []byte(text)
	return s
}

const denyAll = `package writ.ext.tried

# METADATA
# title: Tried
# description: It is tried.
# custom:
#   id: tried
deny contains object.union(rego.metadata.rule().custom, {"reason": "It is tried."}) if {
`

// TestNestingIsBounded: nesting is bounded in every tree, whatever its source.
func TestNestingIsBounded(t *testing.T) {
	for name, text := range map[string]string{
		"arrays":  "x := " + strings.Repeat("[", 50_000) + strings.Repeat("]", 50_000),
		"objects": "x := " + strings.Repeat(`{"a":`, 50_000) + "1" + strings.Repeat("}", 50_000),
		"calls":   "x := " + strings.Repeat("abs(", 50_000) + "1" + strings.Repeat(")", 50_000),
		"groups":  "x := " + strings.Repeat("(", 50_000) + "1" + strings.Repeat(")", 50_000),
		"bodies":  "x := " + strings.Repeat("[1 | ", 50_000) + "true" + strings.Repeat("]", 50_000),
	} {
		_, err := policies.New(tried("ext/deep/deep.rego", "package writ.ext.deep\n\n"+text+"\n"))
		if err == nil || !strings.Contains(err.Error(), "nested too deeply") {
			t.Errorf("%s: %.200v", name, err)
		}
	}
}

// TestReadsMark: a tree reads an input that is only a mark where a rule's expression names it.
func TestReadsMark(t *testing.T) {
	for rule, want := range map[string]bool{`input.intent.args.input.region != "eu"`: true, `input.intent.args.skill == "x"`: false} {
		e := must(policies.New(tried("ext/tried/tried.rego", denyAll+"	"+rule+"\n}\n")))
		if got := must(policies.ReadsMark(t.Context(), e, "intent", "args", "input")); got != want {
			t.Errorf("%s: read: %v", rule, got)
		}
	}
}
