//go:build linux && (amd64 || arm64)

package sandbox

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// turn is the turn of a tenant's run.
type turn struct {
	tenant string
	leave  func()
}

// turns is a sandbox that has nothing but its places.
func turns(t *testing.T, places int) *Sandbox {
	t.Helper()
	s := &Sandbox{places: placesOf(places), pool: &pool{wake: make(chan struct{}, 1)}}
	s.stopping, s.stop = context.WithCancel(t.Context())
	return s
}

// waiter asks for a turn and tells on served when it has one.
func waiter(t *testing.T, s *Sandbox, tenant string, served chan<- turn) {
	t.Helper()
	go func() {
		switch leave, _, err := s.await(t.Context(), Job{Tenant: tenant}); {
		case err == nil:
			served <- turn{tenant, leave}
		case !errors.Is(err, ErrClosed):
			t.Error(err)
		}
	}()
	synctest.Wait() // it waits, or has begun
}

// TestTurnsByTenant: one tenant asks for many runs, then two ask for one each.
func TestTurnsByTenant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := turns(t, 1)
		served := make(chan turn, 10)
		for _, tenant := range []string{"greedy", "greedy", "greedy", "greedy", "late", "later", "late"} {
			waiter(t, s, tenant, served)
		}
		var order []string
		for range 7 {
			next := <-served
			order = append(order, next.tenant)
			next.leave()
		}
		if diff := cmp.Diff([]string{"greedy", "late", "later", "greedy", "late", "greedy", "greedy"}, order); diff != "" {
			t.Error(diff)
		}
		if running, waiting := s.Load(); running+waiting != 0 {
			t.Errorf("%d run, %d wait", running, waiting)
		}
	})
}

// TestTurnsAreShared: however many runs a tenant has and wants, another's first begins at once, and
// the next that ends makes room for who has fewer.
func TestTurnsAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := turns(t, 4)
		served := make(chan turn, 30)
		leave := map[string][]func(){}
		begun := func() (list []string) {
			synctest.Wait()
			for len(served) > 0 {
				next := <-served
				list, leave[next.tenant] = append(list, next.tenant), append(leave[next.tenant], next.leave)
			}
			slices.Sort(list) // which of two is notified first is random
			return list
		}
		end := func(tenant string, n int) {
			for range n {
				leave[tenant][0]()
				leave[tenant] = leave[tenant][1:]
			}
		}
		for range 20 {
			waiter(t, s, "greedy", served)
		}
		if diff := cmp.Diff([]string{"greedy", "greedy", "greedy"}, begun()); diff != "" {
			t.Error(diff)
		}
		waiter(t, s, "other", served)
		waiter(t, s, "other", served)
		if diff := cmp.Diff([]string{"other"}, begun()); diff != "" {
			t.Error(diff)
		}
		end("greedy", 2)
		if diff := cmp.Diff([]string{"greedy", "other"}, begun()); diff != "" {
			t.Error(diff)
		}
		end("other", 2)
		if diff := cmp.Diff([]string{"greedy"}, begun()); diff != "" {
			t.Errorf("a place that no other wants goes beyond the share: %s", diff)
		}
		if running, _ := s.Load(); running != 3 {
			t.Errorf("%d run", running)
		}
		s.stop()
		synctest.Wait()
		if _, waiting := s.Load(); waiting != 0 {
			t.Errorf("%d wait", waiting)
		}
	})
}

// TestTurnsAreBounded: what one tenant can have wait ends, and another's goes on.
func TestTurnsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := turns(t, 1)
		served := make(chan turn, 2+maxWaiting)
		for range 1 + maxWaiting {
			waiter(t, s, "greedy", served)
		}
		if _, _, err := s.await(t.Context(), Job{Tenant: "greedy"}); !errors.Is(err, ErrBusy) {
			t.Errorf("got %v", err)
		}
		waiter(t, s, "other", served)
		for _, want := range []string{"greedy", "other"} {
			next := <-served
			if next.tenant != want {
				t.Errorf("%s, want %s", next.tenant, want)
			}
			next.leave()
		}
		s.stop()
		synctest.Wait()
	})
}

// TestTurnsEnd: waiters get an error when no more may begin, and nobody is admitted afterwards.
func TestTurnsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := turns(t, 1)
		leave, _, err := s.await(t.Context(), Job{Tenant: "a"})
		if err != nil {
			t.Fatal(err)
		}
		told := make(chan error)
		go func() { _, _, err := s.await(t.Context(), Job{Tenant: "b"}); told <- err }()
		synctest.Wait()
		s.stop()
		if err := <-told; !errors.Is(err, ErrClosed) {
			t.Errorf("got %v", err)
		}
		leave()
		if _, _, err := s.await(t.Context(), Job{Tenant: "a"}); !errors.Is(err, ErrClosed) {
			t.Errorf("got %v", err)
		}
		if running, _ := s.Load(); running != 0 {
			t.Errorf("%d run", running)
		}
	})
}

// TestTurnsGivenUp: whoever gives up, or has waited long enough, leaves its turn to others.
func TestTurnsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := turns(t, 1)
		leave, _, err := s.await(t.Context(), Job{Tenant: "a"})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		gave := make(chan error)
		go func() { _, _, err := s.await(ctx, Job{Tenant: "b"}); gave <- err }()
		synctest.Wait()
		cancel()
		if err := <-gave; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		if _, _, err := s.await(t.Context(), Job{Tenant: "b", Queue: time.Second}); !errors.Is(err, ErrBusy) {
			t.Errorf("got %v", err)
		}
		leave()
		if _, _, err := s.await(t.Context(), Job{Tenant: "c"}); err != nil {
			t.Error(err)
		}
	})
}
