package skills

import (
	"fmt"
	"testing"
	"time"

	"aob.dev/writ/executors"
)

// TestCacheShares: whoever has many answers kept, or large ones, loses the oldest of his own.
func TestCacheShares(t *testing.T) {
	now := time.Unix(1000, 0)
	for name, flood := range map[string]struct {
		tenant string
		user   func(n int) string
		size   int
	}{
		"a tenant":       {"b", func(n int) string { return fmt.Sprint("u", n) }, 1 << 10},
		"large answers":  {"b", func(int) string { return "ben" }, maxKeptOne},
		"the own tenant": {"a", func(int) string { return "ben" }, 1 << 20},
		"shared answers": {"a", func(int) string { return "" }, 1 << 20},
	} {
		c := NewCache(func() time.Time { return now })
		c.keep("hers", cachedAnswer{at: now, tenant: "a", user: "ana"}, 0)
		large := cachedAnswer{at: now, tenant: flood.tenant, content: executors.Content{Text: string(make([]byte, flood.size))}}
		last := 0
		for ; last < maxKept/2/(keptExtra+flood.size); last++ { // more than a tenant gets
			large.user = flood.user(last)
			c.keep(fmt.Sprint(last), large, 0)
		}
		for key, want := range map[string]bool{"hers": true, "0": false, fmt.Sprint(last - 1): true} {
			if _, ok := c.fresh(key, time.Minute); ok != want {
				t.Errorf("%s: %s is kept: %v", name, key, ok)
			}
		}
	}
}
