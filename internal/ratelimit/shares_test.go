package ratelimit_test

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"aob.dev/writ/internal/ratelimit"
)

// TestShares: a key, or a tenant, that takes all places takes them of itself, whoever comes has
// one, and nobody else loses his.
func TestShares(t *testing.T) {
	shares := ratelimit.Shares{All: 12, Tenant: 8, Key: 4}
	held := map[string]ratelimit.Holder{}
	at := time.Unix(1000, 0)
	come := func(tenant, key string) {
		at = at.Add(time.Second)
		if id, must := shares.Evict(maps.All(held), tenant, key); must {
			delete(held, id)
		}
		held[fmt.Sprint(tenant, key, at.Unix())] = ratelimit.Holder{Tenant: tenant, Key: key, Used: at}
	}
	count := func(tenant, key string) (n int) {
		for _, h := range held {
			if h.Tenant == tenant && (key == "" || h.Key == key) {
				n++
			}
		}
		return n
	}
	come("b", "1")
	come("a", "other")
	for range 100 {
		come("a", "1")
	}
	if count("a", "1") != 4 || count("a", "other") != 1 || count("b", "1") != 1 {
		t.Errorf("after one key: %v", held)
	}
	for i := range 100 {
		come("a", fmt.Sprint("many", i))
	}
	if count("a", "") != 8 || count("b", "1") != 1 {
		t.Errorf("after one tenant: %v", held)
	}
	for i := range 100 {
		come(fmt.Sprint("t", i), "1")
	}
	if len(held) != 12 || count("b", "1") > 1 {
		t.Errorf("after many tenants: %v", held)
	}
	for i := range 8 {
		come("c", fmt.Sprint(i))
	}
	if count("c", "") < 1 || len(held) != 12 {
		t.Errorf("a tenant that comes last has no place: %v", held)
	}
}
