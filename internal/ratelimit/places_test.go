package ratelimit_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"aob.dev/writ/internal/ratelimit"
)

// fill takes places for a tenant's key until there is none, and says how many they were.
func fill(t *testing.T, p *ratelimit.Places, tenant, key string) (leave []func()) {
	t.Helper()
	for {
		l, ok := p.Take(tenant, key)
		if !ok {
			return leave
		}
		leave = append(leave, l)
	}
}

// TestPlacesLeaveShares: there are never more than there may be, and after each tenant, and each
// key, that takes all it can, the next one still finds some.
func TestPlacesLeaveShares(t *testing.T) {
	const all = 512
	p := ratelimit.NewPlaces(all)
	var leave []func()
	for _, tt := range []struct {
		tenant, key string
		least       int
	}{{"a", "1", all / 2}, {"a", "2", 16}, {"a", "3", 4}, {"b", "1", 16}, {"c", "1", 8}, {"d", "1", 4}, {"e", "1", 1}, {"f", "1", 1}} {
		got := fill(t, p, tt.tenant, tt.key)
		if len(got) < tt.least {
			t.Errorf("tenant %s, key %s has %d", tt.tenant, tt.key, len(got))
		}
		leave = append(leave, got...)
	}
	if p.Used() > all || p.Used() != len(leave) {
		t.Errorf("%d are taken, by %d", p.Used(), len(leave))
	}
	leave[0]()
	if _, ok := p.Take("a", "1"); ok {
		t.Error("who has most gets what is left")
	}
	l, ok := p.Take("new", "1")
	if !ok {
		t.Fatal("a tenant that has nothing gets nothing")
	}
	for _, l := range append(leave[1:], l) {
		l()
	}
	if p.Used() != 0 || len(fill(t, p, "a", "1")) < all/2 {
		t.Error("places do not come back")
	}
	for _, n := range []int{1, 2, 8} {
		if got := len(fill(t, ratelimit.NewPlaces(n), "a", "1")); got < max(1, n/2) || got > n {
			t.Errorf("of %d, one has %d", n, got)
		}
	}
}

// waits has n of a tenant's key come; each says on served that it has a place, and leaves on go.
func waits(t *testing.T, p *ratelimit.Places, served chan<- string, tenant, key string, priority, n int) {
	t.Helper()
	for i := range n {
		go func() {
			leave, err := p.Wait(t.Context(), tenant, key, priority)
			if err != nil {
				t.Error(err)
				return
			}
			served <- fmt.Sprint(tenant, key, priority, " ", i)
			leave()
		}()
		synctest.Wait()
	}
}

// TestPlacesInTurns: the next place goes to the tenant that has waited for one longest, in it by
// priority, then in turn; one that floods delays another's first by one.
func TestPlacesInTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := ratelimit.NewPlaces(1)
		leave, err := p.Wait(t.Context(), "a", "", 0)
		if err != nil {
			t.Fatal(err)
		}
		served := make(chan string)
		waits(t, p, served, "a", "x", 0, 3)
		waits(t, p, served, "b", "x", 0, 2)
		waits(t, p, served, "a", "x", 1, 1)
		waits(t, p, served, "c", "x", 0, 1)
		leave()
		var got []string
		for range 7 {
			got = append(got, <-served)
		}
		if want := []string{"bx0 0", "cx0 0", "ax1 0", "bx0 1", "ax0 0", "ax0 1", "ax0 2"}; !slices.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
		synctest.Wait()
		if p.Used() != 0 || p.Waiting() != 0 {
			t.Errorf("%d taken, %d wait", p.Used(), p.Waiting())
		}
	})
}

// TestPlacesOfKeys: of two keys of a tenant the one that has fewer places gets the next.
func TestPlacesOfKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := ratelimit.PlacesOf(ratelimit.Shares{All: 4, Tenant: 3, Key: 3})
		first := fill(t, p, "a", "1")
		served := make(chan string)
		waits(t, p, served, "a", "1", 0, 1)
		waits(t, p, served, "a", "2", 0, 1)
		if len(first) != 3 || p.Waiting() != 2 {
			t.Fatalf("%d are taken, %d wait", len(first), p.Waiting())
		}
		if _, ok := p.Take("b", "1"); !ok {
			t.Error("nothing is left for another tenant")
		}
		first[0]()
		if got := <-served; got != "a20 0" {
			t.Error(got)
		}
		<-served
	})
}

// TestPlacesReleased: who waits no longer takes none along.
func TestPlacesReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := ratelimit.NewPlaces(1)
		leave, _ := p.Wait(t.Context(), "a", "", 0)
		ctx, cancel := context.WithCancel(t.Context())
		gave := make(chan error)
		go func() {
			_, err := p.Wait(ctx, "b", "", 0)
			gave <- err
		}()
		synctest.Wait()
		cancel()
		if err := <-gave; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		leave()
		if _, ok := p.Take("c", ""); !ok || p.Waiting() != 0 {
			t.Error("a place is lost")
		}
	})
}
