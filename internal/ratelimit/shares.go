package ratelimit

import (
	"container/list"
	"iter"
)

// Shares of a table: how much there is in all, for a tenant, and for a key of a tenant, which
// may act for many users.
type Shares struct{ All, Tenant, Key int }

// Of n places nobody has a share of his own.
func Of(n int) Shares { return Shares{n, n, n} }

// Table holds values in places that tenants and their keys share. There is always a place: a key
// that has its share loses the value of its own that was used least recently; of a tenant that
// has its share, and of a full table, the key or the tenant that holds most does. So whoever makes
// many names displaces nobody who holds less. A step takes the logarithm of the number of tenants
// and keys. A Table is not for concurrent use.
type Table[V any] struct {
	shares Shares
	gone   func(V) // told of what is displaced; may be nil
	clock  uint64  // uses so far
	places map[string]*place[V]
	root   *group
}

type place[V any] struct {
	size  int
	value V
	use
}

// use is where a value stands in the group of its key.
type use struct {
	id string
	at uint64 // last use
	in *list.Element
	of *group
}

// NewTable makes an empty table. It tells gone, unless that is nil, which values are displaced.
func NewTable[V any](shares Shares, gone func(V)) *Table[V] {
	return &Table[V]{shares: shares, gone: gone, places: map[string]*place[V]{}, root: &group{by: map[string]*group{}}}
}

// Len is how many values the table holds.
func (t *Table[V]) Len() int { return len(t.places) }

// All values by id, in no order. The value at hand may be removed.
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
	p.at = t.clock
	p.of.values.MoveToBack(p.in)
	p.of.changed()
	return p.value, true
}

// Put holds a value of a tenant's key in place of the one with its id. The size, at least 1, is
// what it takes of the shares.
func (t *Table[V]) Put(id, tenant, key string, size int, v V) {
	t.Remove(id)
	for {
		old := t.loser(tenant, key, size)
		if old == nil {
			break
		}
		gone := t.places[old.id].value
		t.Remove(old.id)
		if t.gone != nil {
			t.gone(gone)
		}
	}
	t.clock++
	p := &place[V]{size: size, value: v, use: use{id: id, at: t.clock, of: t.root.part(tenant).part(key)}}
	p.in = p.of.values.PushBack(&p.use)
	p.of.add(size)
	t.places[id] = p
}

// Remove a value.
func (t *Table[V]) Remove(id string) {
	p, ok := t.places[id]
	if !ok {
		return
	}
	delete(t.places, id)
	p.of.values.Remove(p.in)
	p.of.add(-p.size)
}

// loser is what makes room for another value of a key; nil: there is room.
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
