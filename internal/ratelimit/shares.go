package ratelimit

import (
	"iter"
	"time"
)

// Holder is who holds a place in a table that callers share.
type Holder struct {
	Tenant, Key string
	Used        time.Time // last
}

// Shares of a table: how many places there are in all, for a tenant, and for an API key, which
// may act for many users. There is always a place: of those who have their share, the one that
// was used least recently goes.
type Shares struct{ All, Tenant, Key int }

// Evict says whose place a new caller takes; false: there is one free. A key that has its share
// loses one of its own, else a tenant that has its share does, else the tenant that holds most.
func (s Shares) Evict(held iter.Seq2[string, Holder], tenant, key string) (id string, must bool) {
	all, tenants, ofKey := 0, map[string]int{}, 0
	for _, h := range held {
		all++
		tenants[h.Tenant]++
		if h.Tenant == tenant && h.Key == key {
			ofKey++
		}
	}
	most := tenant
	for name, n := range tenants {
		if n > tenants[most] || n == tenants[most] && name < most && most != tenant {
			most = name
		}
	}
	switch {
	case ofKey >= s.Key:
		return oldest(held, func(h Holder) bool { return h.Tenant == tenant && h.Key == key }), true
	case tenants[tenant] >= s.Tenant:
		return oldest(held, func(h Holder) bool { return h.Tenant == tenant }), true
	case all >= s.All:
		return oldest(held, func(h Holder) bool { return h.Tenant == most }), true
	}
	return "", false
}

func oldest(held iter.Seq2[string, Holder], of func(Holder) bool) (id string) {
	var used time.Time
	for name, h := range held {
		if of(h) && (id == "" || h.Used.Before(used)) {
			id, used = name, h.Used
		}
	}
	return id
}
