package agents

import "testing"

// TestAhead: only of tools that agents do not have is said that they are not there.
func TestAhead(t *testing.T) {
	r := read(t, map[string]string{"a.yaml": "name: a\ndescription: d\ntools: [{name: search}, {name: action}, {name: load_skill}]\n"})
	if got := r.Ahead().Error(); got != "a.yaml:3: /tools/2: there is no tool load_skill yet: the agent works without it" {
		t.Error(got)
	}
}
