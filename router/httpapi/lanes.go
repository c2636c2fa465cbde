package httpapi

import (
	"context"
	"sync"
)

// maxHeavy is how many read the whole record at once, each for another tenant.
const maxHeavy = 4

// lanes let one of a tenant at a time through, and maxHeavy in all: who waits behind others of
// the own tenant takes no place of anybody else's.
type lanes struct {
	mu    sync.Mutex
	inUse map[string]*lane
	all   chan struct{}
}

type lane struct {
	place chan struct{}
	users int // that wait or have it
}

func newLanes() *lanes {
	return &lanes{inUse: map[string]*lane{}, all: make(chan struct{}, maxHeavy)}
}

// enter waits for the tenant's turn. Not ok: ctx ended before; else leave must be called.
func (l *lanes) enter(ctx context.Context, tenant string) (leave func(), ok bool) {
	own := l.of(tenant)
	for _, place := range []chan struct{}{own.place, l.all} {
		select {
		case place <- struct{}{}:
		case <-ctx.Done():
			if place == l.all {
				<-own.place
			}
			l.left(tenant)
			return nil, false
		}
	}
	return func() {
		<-l.all
		<-own.place
		l.left(tenant)
	}, true
}

func (l *lanes) of(tenant string) *lane {
	l.mu.Lock()
	defer l.mu.Unlock()
	own := l.inUse[tenant]
	if own == nil {
		own = &lane{place: make(chan struct{}, 1)}
		l.inUse[tenant] = own
	}
	own.users++
	return own
}

func (l *lanes) left(tenant string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.inUse[tenant].users--; l.inUse[tenant].users == 0 {
		delete(l.inUse, tenant)
	}
}
