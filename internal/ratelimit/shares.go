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
// has less. To displace a value it looks at all tenants and keys, and otherwise at none. A Table is
// not for concurrent use.
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
		return ofTenant.most(ofKey).oldest()
	case t.root.full(size, t.shares.All):
		largest := t.root.most(ofTenant)
		return largest.most(largest.by[key]).oldest()
	}
	return nil
}

// group is the share of a key, of a tenant, which is a group of keys, or of all, a group of
// tenants.
type group struct {
	name   string
	in     *group // nil: all
	used   int
	by     map[string]*group
	values list.List // *use of a key, the one used least recently first
}

// part returns the part of a group by name, and creates a missing one. It must be added to.
func (g *group) part(name string) *group {
	p := g.by[name]
	if p == nil {
		p = &group{name: name, in: g, by: map[string]*group{}}
		g.by[name] = p
	}
	return p
}

// add adds to the use of a key, its tenant and all. An empty part is removed.
func (g *group) add(size int) {
	for ; g != nil; g = g.in {
		if g.used += size; g.used == 0 && g.in != nil {
			delete(g.in.by, g.name)
		}
	}
}

// full reports whether a group has something and no room for more.
func (g *group) full(size, share int) bool { return g != nil && g.used > 0 && g.used+size > share }

// most is the largest part: of equal ones, own, else the one whose oldest value was used least recently.
func (g *group) most(own *group) (most *group) {
	for _, p := range g.by {
		switch {
		case most == nil || p.used > most.used:
			most = p
		case p.used < most.used || most == own:
		case p == own || p.oldest().lastUse < most.oldest().lastUse:
			most = p
		}
	}
	return most
}

// oldest is the value that goes first.
func (g *group) oldest() *use {
	for len(g.by) > 0 {
		g = g.most(nil)
	}
	return g.values.Front().Value.(*use) //nolint:forcetypeassert // nothing else is put there
}
