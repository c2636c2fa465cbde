package state

import (
	"testing"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

// What memory:* gave is judged by the rules of then.
func TestCoveredByRules(t *testing.T) {
	for _, c := range []struct {
		rules intents.Rules
		have  string
		need  string
		want  bool
	}{
		{intents.RulesFirst, "memory:*", catalog.CapabilityTenantMemory, true},
		{intents.RulesFirst, "*:*", catalog.CapabilityTenantMemory, true},
		{intents.RulesStrict, "memory:*", catalog.CapabilityTenantMemory, false},
		{intents.RulesStrict, "memory:write", catalog.CapabilityTenantMemory, false},
		{intents.RulesStrict, "*:*", catalog.CapabilityTenantMemory, false},
		{intents.RulesStrict, "memory:write:*", catalog.CapabilityTenantMemory, true},
		{intents.RulesStrict, "memory:write:tenant", catalog.CapabilityTenantMemory, true},
		{intents.RulesStrict, "memory:*", "memory:write", true},
		{intents.RulesStrict, "souls:*", "souls:write:tenant", true},
	} {
		if got := Covered(c.rules, []string{c.have}, c.need); got != c.want {
			t.Errorf("rules %d: %s gives %s: %v", c.rules, c.have, c.need, got)
		}
	}
}
