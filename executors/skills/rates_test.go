package skills

import (
	"fmt"
	"testing"
	"time"
)

// TestRateShares: a tenant that calls many skills has the rates of its own forgotten, and
// a changed document begins a rate anew.
func TestRateShares(t *testing.T) {
	now := time.Unix(1000, 0)
	clock := func() time.Time { return now }
	var r rates
	allowed := func(tenant, skill string, rpm int) bool {
		_, ok := r.allow(tenant, skill, rpm, clock)
		return ok
	}
	if !allowed("a", "s.t", 1) || allowed("a", "s.t", 1) {
		t.Error("the first call alone is within the rate")
	}
	for n := range 3 * rateShares.All {
		allowed("b", fmt.Sprint("s.t", n), 1)
	}
	if allowed("a", "s.t", 1) || r.table.Len() > rateShares.Tenant+1 {
		t.Errorf("the rate of another tenant was forgotten, or not its own: %d", r.table.Len())
	}
	if !allowed("a", "s.t", 2) || !allowed("a", "s.t", 0) {
		t.Error("a changed rate")
	}
}
