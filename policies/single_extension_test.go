package policies_test

import (
	"strings"
	"testing"

	"aob.dev/writ/policies"
)

const night = `package writ.ext.night

# METADATA
# title: No calls at night
# description: The shop is closed.
# custom:
#   id: night.calls
#   hint: wait for the morning
deny contains {"id": "night.calls", "reason": "no calls at night"} if {
	input.intent.type == "skill.call"
}
`

// TestCheckExtension: an extension is checked without the tree that it will tighten.
func TestCheckExtension(t *testing.T) {
	s := policies.Source{"night.rego": []byte(night)}
	if !policies.IsExtension(s) || policies.IsExtension(policies.Embedded()) || policies.IsExtension(policies.Source{}) {
		t.Error("not told apart from a tree")
	}
	r, err := policies.CheckAny(s)
	if err != nil || len(r.Rules) != 1 || r.Rules[0].ID != "night.calls" || r.Rules[0].File != "night.rego" || r.Digest != s.Digest() {
		t.Errorf("%+v %v", r, err)
	}
	for name, x := range map[string]struct{ file, text, want string }{
		"another package": {"night.rego", strings.Replace(night, "writ.ext.night", "night", 1), "an extension is in packages writ.ext.<name>"},
		"a wrong rule":    {"night.rego", strings.Replace(night, "input.intent.type", "inptu.intent.type", 1), "inptu"},
		"data":            {"data.json", "{}", "an extension has no data files"},
	} {
		if _, err := policies.CheckAny(policies.Source{x.file: []byte(x.text)}); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
