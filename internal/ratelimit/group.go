package ratelimit

import (
	"cmp"
	"container/heap"
	"container/list"
)

// group is the share of a key, of a tenant, which is a group of keys, or of all, a group of
// tenants.
type group struct {
	name   string
	in     *group // nil: all
	index  int    // among the parts of that
	used   int
	by     map[string]*group
	parts  parts
	values list.List // *use of a key, the one used least recently first
}

// part returns the part of a group by name, and creates a missing one. It must be added to.
func (g *group) part(name string) *group {
	p := g.by[name]
	if p == nil {
		p = &group{name: name, in: g, by: map[string]*group{}, index: -1}
		g.by[name] = p
	}
	return p
}

// add adds to the use of a key, its tenant and all. An empty part is removed.
func (g *group) add(size int) {
	for ; g != nil; g = g.in {
		g.used += size
		switch {
		case g.in == nil:
		case g.used == 0:
			heap.Remove(&g.in.parts, g.index)
			delete(g.in.by, g.name)
		case g.index < 0:
			heap.Push(&g.in.parts, g)
		default:
			heap.Fix(&g.in.parts, g.index)
		}
	}
}

// changed notes that the oldest value of a key may be another one.
func (g *group) changed() { g.add(0) }

// full reports whether a group has something and no room for more.
func (g *group) full(size, share int) bool { return g != nil && g.used > 0 && g.used+size > share }

// most is the largest part: of equal ones, the one named, else the one whose oldest value was used
// least recently.
func (g *group) most(name string) *group {
	if own := g.by[name]; own != nil && own.used == g.parts[0].used {
		return own
	}
	return g.parts[0]
}

// oldest is the value that goes first.
func (g *group) oldest() *use {
	for len(g.parts) > 0 {
		g = g.parts[0]
	}
	if first := g.values.Front(); first != nil {
		return first.Value.(*use) //nolint:forcetypeassert // nothing else is put there
	}
	return &use{} // its last one has just gone
}

// parts are a heap.
type parts []*group

func (p *parts) Len() int { return len(*p) }

func (p *parts) Less(i, j int) bool {
	a, b := (*p)[i], (*p)[j]
	return cmp.Or(cmp.Compare(b.used, a.used), cmp.Compare(a.oldest().lastUse, b.oldest().lastUse)) < 0
}

func (p *parts) Swap(i, j int) {
	all := *p
	all[i], all[j] = all[j], all[i]
	all[i].index, all[j].index = i, j
}

// Push is for heap.Push.
func (p *parts) Push(x any) {
	g := x.(*group) //nolint:forcetypeassert // of groups alone
	g.index = len(*p)
	*p = append(*p, g)
}

// Pop is for heap.Pop.
func (p *parts) Pop() any {
	last := len(*p) - 1
	g := (*p)[last]
	*p = (*p)[:last]
	return g
}
