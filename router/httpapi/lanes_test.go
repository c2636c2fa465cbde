package httpapi

import (
	"context"
	"testing"
)

// TestLanes: one of a tenant at a time, however many wait, and none takes the place of another
// tenant's.
func TestLanes(t *testing.T) {
	l := newLanes()
	gone, leave := context.WithCancel(t.Context())
	leave()
	first, ok := l.enter(t.Context(), "acme")
	if !ok {
		t.Fatal("an empty lane is closed")
	}
	ended := make(chan bool)
	waiting, stop := context.WithCancel(t.Context())
	for range 2 * maxHeavy {
		go func() {
			_, ok := l.enter(waiting, "acme")
			ended <- ok
		}()
	}
	other, ok := l.enter(t.Context(), "beta")
	if !ok {
		t.Fatal("one tenant's queue closes the lane of another")
	}
	stop()
	for range 2 * maxHeavy {
		if <-ended {
			t.Error("two of a tenant at once")
		}
	}
	first()
	other()
	for range 2 * maxHeavy { // nothing of those who left is kept
		leave, ok := l.enter(t.Context(), "acme")
		if !ok {
			t.Fatal("a lane stays closed")
		}
		leave()
	}
	if len(l.inUse) != 0 || len(l.all) != 0 {
		t.Errorf("%d lanes and %d places are left", len(l.inUse), len(l.all))
	}
	for range maxHeavy { // each tenant has a place, up to the bound
		if _, ok := l.enter(t.Context(), t.Name()+string(rune('a'+len(l.all)))); !ok {
			t.Fatal("no place")
		}
	}
	if _, ok := l.enter(gone, "last"); ok || l.inUse["last"] != nil {
		t.Error("more at once than the bound")
	}
}
