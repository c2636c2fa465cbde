package ratelimit

import (
	"container/list"
	"iter"
)

// Shares of a table: the size in all, for a tenant, and for a key of a tenant, which may act for
// many users.
type Shares struct{ All, Tenant, Key int }

// Unshared n places nobody has a share of his own.
func Unshared(n int) Shares { return Shares{n, n, n} }

// Table holds values in places that tenants and their keys share. There is always a place: a key
// with a full share loses its own least recently used value; in a tenant with a full share, or a
// full table, the largest key or tenant loses one. So a caller with many names displaces nobody who
// has less. A step takes the logarithm of the number of tenants and keys. A Table is not for
// concurrent use.
type Table[V any] struct {
	shares  Shares
	evicted func(V) // called with displaced values; may be nil
	clock   uint64  // uses so far
	places  map[string]*place[V]
	root    *group
}

type place[V any] struct {
	size  int
	value V
	use
}

// use is where a value stands in the group of its key.
type use struct {
	id      string
	lastUse uint64 // last use
	in      *list.Element
	group   *group
}

// NewTable makes an empty table. It calls gone, unless that is nil, with displaced values.
func NewTable[V any](shares Shares, gone func(V)) *Table[V] {
	return &Table[V]{shares: shares, evicted: gone, places: map[string]*place[V]{}, root: &group{by: map[string]*group{}}}
}

// Len is the number of values in the table.
func (t *Table[V]) Len() int { return len(t.places) }

// All values by id, in no order. The current value may be removed.
func (t *Table[V]) All() iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		for id, p := range t.places {
			if !yield(id, p.value) {
				return
			}
		}
	}
}

// Peek gives a value without using it.
func (t *Table[V]) Peek(id string) (v V, ok bool) {
	p, ok := t.places[id]
	if ok {
		v = p.value
	}
	return v, ok
}

// Get gives a value, which is now the one used last.
func (t *Table[V]) Get(id string) (v V, ok bool) {
	p, ok := t.places[id]
	if !ok {
		return v, false
	}
	t.clock++
	p.lastUse = t.clock
	p.group.values.MoveToBack(p.in)
	p.group.changed()
	return p.value, true
}

// Put stores a value of a tenant's key in place of the one with its id. The size, at least 1,
// counts against the shares.
func (t *Table[V]) Put(id, tenant, key string, size int, v V) {
	t.Remove(id)
	for {
		old := t.loser(tenant, key, size)
		if old == nil {
			break
		}
		gone := t.places[old.id].value
		t.Remove(old.id)
		if t.evicted != nil {
			t.evicted(gone)
		}
	}
	t.clock++
	p := &place[V]{size: size, value: v, use: use{id: id, lastUse: t.clock, group: t.root.part(tenant).part(key)}}
	p.in = p.group.values.PushBack(&p.use)
	p.group.add(size)
	t.places[id] = p
}

// Remove a value.
func (t *Table[V]) Remove(id string) {
	p, ok := t.places[id]
	if !ok {
		return
	}
	delete(t.places, id)
	p.group.values.Remove(p.in)
	p.group.add(-p.size)
}

// loser is the value to displace for another value of a key; nil: there is room.
func (t *Table[V]) loser(tenant, key string, size int) *use {
	ofTenant := t.root.by[tenant]
	ofKey := (*group)(nil)
	if ofTenant != nil {
		ofKey = ofTenant.by[key]
	}
	switch {
	case ofKey.full(size, t.shares.Key):
		return ofKey.oldest()
	case ofTenant.full(size, t.shares.Tenant):
		return ofTenant.most(key).oldest()
	case t.root.full(size, t.shares.All):
		return t.root.most(tenant).most(key).oldest()
	}
	return nil
}
