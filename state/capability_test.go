package state

import (
	"testing"

	"aob.dev/writ/intents/catalog"
)

// TestCovered: a capability without resource covers all but reserved ones.
func TestCovered(t *testing.T) {
	for _, c := range []struct {
		have string
		need string
		want bool
	}{
		{"memory:*", catalog.CapabilityTenantMemory, false},
		{"memory:write", catalog.CapabilityTenantMemory, false},
		{"*:*", catalog.CapabilityTenantMemory, false},
		{"memory:write:*", catalog.CapabilityTenantMemory, true},
		{"memory:write:tenant", catalog.CapabilityTenantMemory, true},
		{"memory:*", "memory:write", true},
		{"souls:*", "souls:write:tenant", true},
	} {
		if got := Covers([]string{c.have}, c.need); got != c.want {
			t.Errorf("%s gives %s: %v", c.have, c.need, got)
		}
	}
}
