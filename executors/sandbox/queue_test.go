package sandbox

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
)

// waiter asks for a turn in q and tells on served when it has one.
func waiter(t *testing.T, q *queue, tenant string, served chan<- string) {
	t.Helper()
	go func() {
		switch err := q.enter(t.Context(), tenant); {
		case err == nil:
			served <- tenant
		case !errors.Is(err, ErrClosed):
			t.Error(err)
		}
	}()
	synctest.Wait() // it waits in the queue, or has begun
}

// TestQueueTakesTurns: one tenant asks for many runs, then two ask for one each.
func TestQueueTakesTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(1)
		served := make(chan string, 10)
		for _, tenant := range []string{"greedy", "greedy", "greedy", "greedy", "late", "later", "late"} {
			waiter(t, q, tenant, served)
		}
		var order []string
		for range 7 {
			next := <-served
			order = append(order, next)
			q.leave(next)
		}
		if diff := cmp.Diff([]string{"greedy", "greedy", "late", "later", "greedy", "late", "greedy"}, order); diff != "" {
			t.Error(diff)
		}
		if q.free != 1 || len(q.running) != 0 || len(q.waiting) != 0 || len(q.turn) != 0 {
			t.Errorf("left: %+v", q)
		}
	})
}

// TestQueueSharesPlaces: however many runs a tenant has and wants, another's first
// begins at once, and the next that ends makes room for who has fewer.
func TestQueueSharesPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(4)
		served := make(chan string, 30)
		begun := func() (list []string) {
			synctest.Wait()
			for len(served) > 0 {
				list = append(list, <-served)
			}
			slices.Sort(list) // which of two is notified first is random
			return list
		}
		for range 20 {
			waiter(t, q, "greedy", served)
		}
		if diff := cmp.Diff([]string{"greedy", "greedy", "greedy"}, begun()); diff != "" {
			t.Error(diff)
		}
		waiter(t, q, "other", served)
		waiter(t, q, "other", served)
		if diff := cmp.Diff([]string{"other"}, begun()); diff != "" {
			t.Error(diff)
		}
		q.leave("greedy")
		q.leave("greedy")
		// In turns: greedy has waited longest, then other.
		if diff := cmp.Diff([]string{"greedy", "other"}, begun()); diff != "" {
			t.Error(diff)
		}
		q.leave("other")
		q.leave("other")
		if diff := cmp.Diff([]string{"greedy"}, begun()); diff != "" {
			t.Errorf("a place that no other wants goes beyond the share: %s", diff)
		}
		if q.free != 1 || q.running["greedy"] != 3 {
			t.Errorf("%+v", q)
		}
		q.stop()
		synctest.Wait()
	})
}

// TestQueueIsBounded: what one tenant can have wait ends, and another's goes on.
func TestQueueIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(1)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		for range 1 + maxWaiting {
			go func() { _ = q.enter(ctx, "greedy") }()
		}
		synctest.Wait()
		if err := q.enter(t.Context(), "greedy"); !errors.Is(err, ErrBusy) {
			t.Errorf("got %v", err)
		}
		served := make(chan string, 1)
		waiter(t, q, "other", served)
		q.leave("greedy")
		q.leave("greedy")
		if got := <-served; got != "other" {
			t.Error(got)
		}
	})
}

// TestQueueStops: waiters get an error, and nobody is admitted afterwards.
func TestQueueStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(1)
		if err := q.enter(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		told := make(chan error)
		go func() { told <- q.enter(t.Context(), "b") }()
		synctest.Wait()
		q.stop()
		if err := <-told; !errors.Is(err, ErrClosed) {
			t.Errorf("got %v", err)
		}
		q.leave("a")
		if err := q.enter(t.Context(), "a"); !errors.Is(err, ErrClosed) {
			t.Errorf("got %v", err)
		}
	})
}

func TestQueueWithdraws(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(1)
		if err := q.enter(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		gave := make(chan error)
		go func() { gave <- q.enter(ctx, "b") }()
		synctest.Wait()
		cancel()
		if err := <-gave; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		q.leave("a")
		if err := q.enter(t.Context(), "c"); err != nil {
			t.Error(err)
		}
	})
}
