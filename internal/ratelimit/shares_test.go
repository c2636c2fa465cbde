package ratelimit_test

import (
	"fmt"
	"testing"

	"aob.dev/writ/internal/ratelimit"
)

// TestShares: a key, or a tenant, that takes all places takes them of itself, whoever comes has
// one, and nobody else loses his.
func TestShares(t *testing.T) {
	held, n := map[string][2]string{}, 0
	table := ratelimit.NewTable(ratelimit.Shares{All: 12, Tenant: 8, Key: 4}, func(id string) { delete(held, id) })
	come := func(tenant, key string) {
		n++
		id := fmt.Sprint(n)
		held[id] = [2]string{tenant, key}
		table.Put(id, tenant, key, 1, id)
		if table.Len() != len(held) {
			t.Fatalf("%d of %d are held", table.Len(), len(held))
		}
	}
	count := func(tenant, key string) (n int) {
		for _, h := range held {
			if h[0] == tenant && (key == "" || h[1] == key) {
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

// TestSharesOfSizes: what is large displaces as much of its own; what was used stays longer than
// what was not; and what is larger than a share takes it alone.
func TestSharesOfSizes(t *testing.T) {
	table := ratelimit.NewTable[int](ratelimit.Shares{All: 100, Tenant: 60, Key: 60}, nil)
	for i := range 6 {
		table.Put(fmt.Sprint("a", i), "a", "", 10, i)
		table.Put(fmt.Sprint("b", i), "b", "", 5, i)
	}
	table.Get("a0")
	table.Put("large", "a", "", 35, 0)
	for id, want := range map[string]bool{"a0": true, "a1": false, "a4": false, "a5": true, "b0": true, "b5": true, "large": true} {
		if _, ok := table.Peek(id); ok != want {
			t.Errorf("%s is held: %v", id, ok)
		}
	}
	for id := range table.All() {
		table.Remove(id)
	}
	if table.Len() != 0 {
		t.Errorf("%d are left", table.Len())
	}
	table.Put("b", "b", "", 5, 0)
	if _, ok := table.Get("b"); !ok {
		t.Error("an emptied table holds nothing")
	}
}
