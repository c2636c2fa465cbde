package sandbox

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
)

// TestQueueTakesTurns: one tenant asks for many runs, then two ask for one each.
func TestQueueTakesTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(1)
		if err := q.enter(t.Context(), "greedy"); err != nil {
			t.Fatal(err)
		}
		served := make(chan string, 10)
		for _, tenant := range []string{"greedy", "greedy", "greedy", "late", "later", "late"} {
			go func() {
				if err := q.enter(t.Context(), tenant); err != nil {
					t.Error(err)
				}
				served <- tenant
			}()
			synctest.Wait() // it waits in the queue
		}
		var order []string
		for range 6 {
			q.leave()
			order = append(order, <-served)
		}
		if diff := cmp.Diff([]string{"greedy", "late", "later", "greedy", "late", "greedy"}, order); diff != "" {
			t.Error(diff)
		}
		q.leave()
		if q.free != 1 || len(q.waiting) != 0 || len(q.turn) != 0 {
			t.Errorf("left: %+v", q)
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
		q.leave()
		if err := q.enter(t.Context(), "c"); err != nil {
			t.Error(err)
		}
	})
}
