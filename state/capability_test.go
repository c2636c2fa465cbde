package state

import (
	"testing"

	"aob.dev/writ/intents"
)

// What memory:* gave is judged by the rules of then.
func TestCoveredByRules(t *testing.T) {
	for _, c := range []struct {
		rules intents.Rules
		have  string
		need  string
		want  bool
	}{
		{intents.RulesFirst, "memory:*", capabilityTenantMemory, true},
		{intents.RulesFirst, "*:*", capabilityTenantMemory, true},
		{intents.RulesStrict, "memory:*", capabilityTenantMemory, false},
		{intents.RulesStrict, "memory:write", capabilityTenantMemory, false},
		{intents.RulesStrict, "*:*", capabilityTenantMemory, false},
		{intents.RulesStrict, "memory:write:*", capabilityTenantMemory, true},
		{intents.RulesStrict, "memory:write:tenant", capabilityTenantMemory, true},
		{intents.RulesStrict, "memory:*", "memory:write", true},
		{intents.RulesStrict, "souls:*", "souls:write:tenant", true},
	} {
		if got := Covered(c.rules, []string{c.have}, c.need); got != c.want {
			t.Errorf("rules %d: %s gives %s: %v", c.rules, c.have, c.need, got)
		}
	}
}
