package ratelimit

import (
	"cmp"
	"context"
	"slices"
	"sync"
)

// Places bounds concurrent work: in all, of a tenant, and of a key of it. Of the last eighth of all
// places a tenant takes no more than it leaves, and so does a key of its tenant's: so a newcomer
// finds one, however much others have begun. Safe for concurrent use.
type Places struct {
	shares Shares

	mu          sync.Mutex // guards the fields below
	root        *group
	waiting     []*waiter         // the one that came first is first
	clock       uint64            // places given so far
	lastGranted map[string]uint64 // when the last one was, to tenants that have or want one
}

// owner a place is: names of a tenant, a key and, where it matters, a user of that key.
type owner []string

// waiter is a caller that waits for a place.
type waiter struct {
	owner    owner
	priority int
	place    chan struct{} // closed with the place
}

// NewPlaces of which a tenant, and a key of the tenant's, has seven eighths at most.
func NewPlaces(all int) *Places {
	return PlacesOf(Shares{All: all, Tenant: all - all/8, Key: all - all/8})
}

// PlacesOf shares.
func PlacesOf(shares Shares) *Places {
	return &Places{shares: shares, root: &group{by: map[string]*group{}}, lastGranted: map[string]uint64{}}
}

// Take a place, if there is one for a tenant's key. leave gives it back and must be called once.
func (p *Places) Take(tenant, key string) (leave func(), ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	who := owner{tenant, key}
	if !p.free(who) {
		return nil, false
	}
	return p.give(who), true
}

// Wait for a place until ctx ends. The next one goes to the tenant that has fewest, in turns; in
// a tenant to the key that has fewest, by priority, and to who came first.
func (p *Places) Wait(ctx context.Context, tenant, key string, priority int) (leave func(), err error) {
	return p.wait(ctx, &waiter{owner{tenant, key}, priority, make(chan struct{})})
}

// WaitAs waits for a place that users of a key share as keys of a tenant do.
func (p *Places) WaitAs(ctx context.Context, tenant, key, user string) (leave func(), err error) {
	return p.wait(ctx, &waiter{owner{tenant, key, user}, 0, make(chan struct{})})
}

func (p *Places) wait(ctx context.Context, w *waiter) (leave func(), err error) {
	p.mu.Lock()
	p.waiting = append(p.waiting, w)
	p.next()
	p.mu.Unlock()
	select {
	case <-w.place:
	case <-ctx.Done():
	}
	p.mu.Lock()
	i := slices.Index(p.waiting, w)
	if i >= 0 {
		p.waiting = slices.Delete(p.waiting, i, i+1)
		p.forget(w.owner[0])
	}
	p.mu.Unlock()
	switch {
	case ctx.Err() == nil:
		return p.leaver(w.owner), nil
	case i < 0: // it came too late
		p.leaver(w.owner)()
	}
	return nil, ctx.Err()
}

// Used is the number of taken places.
func (p *Places) Used() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.root.used
}

// Waiting is the number of waiters.
func (p *Places) Waiting() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.waiting)
}

// WaitingOf is the number of waiters of a tenant.
func (p *Places) WaitingOf(tenant string) (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range p.waiting {
		if w.owner[0] == tenant {
			n++
		}
	}
	return n
}

// free reports whether there is a place for an owner.
func (p *Places) free(who owner) bool {
	has, taken := p.has(who), p.root.used
	// Each level has an eighth less than the one above: whoever fills one leaves room in that.
	for i, all := range []int{p.shares.All, p.shares.Tenant, p.shares.Key - p.shares.Key/8}[:len(who)] {
		if !fair(has[i], taken, all) {
			return false
		}
		taken = has[i]
	}
	return has[1] < p.shares.Key
}

// fair reports whether a part of the taken places may have one more.
func fair(part, taken, all int) bool {
	left := all - taken
	return left > 0 && (left > all/8 || part < left)
}

// has returns the number of places of a tenant, its key, and a user of that key.
func (p *Places) has(who owner) (used [3]int) {
	g := p.root
	for i, name := range who {
		if g = g.by[name]; g == nil {
			break
		}
		used[i] = g.used
	}
	return used
}

func (p *Places) give(who owner) (leave func()) {
	p.clock++
	p.lastGranted[who[0]] = p.clock
	g := p.root
	for _, name := range who {
		g = g.part(name)
	}
	g.add(1)
	return p.leaver(who)
}

func (p *Places) leaver(who owner) func() {
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		g := p.root
		for _, name := range who {
			g = g.by[name]
		}
		g.add(-1)
		p.next()
		p.forget(who[0])
	}
}

// next gives free places to waiters.
func (p *Places) next() {
	for {
		var first *waiter
		for _, w := range p.waiting {
			if p.free(w.owner) && (first == nil || p.before(w, first)) {
				first = w
			}
		}
		if first == nil {
			return
		}
		p.waiting = slices.DeleteFunc(p.waiting, func(w *waiter) bool { return w == first })
		p.give(first.owner)
		close(first.place)
	}
}

func (p *Places) before(a, b *waiter) bool {
	ofA, ofB := p.has(a.owner), p.has(b.owner)
	return cmp.Or(cmp.Compare(ofA[0], ofB[0]), cmp.Compare(p.lastGranted[a.owner[0]], p.lastGranted[b.owner[0]]), cmp.Compare(ofA[1], ofB[1]), cmp.Compare(ofA[2], ofB[2]), cmp.Compare(b.priority, a.priority)) < 0
}

// forget when a tenant had a place that has none and wants none.
func (p *Places) forget(tenant string) {
	if p.root.by[tenant] == nil && !slices.ContainsFunc(p.waiting, func(w *waiter) bool { return w.owner[0] == tenant }) {
		delete(p.lastGranted, tenant)
	}
}
