package agentic

import (
	"context"
	"errors"
	"slices"
	"testing"
)

// Places are given by priority, then in turn; who waits no longer takes none along.
func TestQueue(t *testing.T) {
	q := newQueue(1)
	leave, err := q.enter(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	entered := make(chan string)
	wait := func(ctx context.Context, name, priority string) {
		before := waitingIn(q)
		go func() {
			leave, err := q.enter(ctx, priority)
			if err != nil {
				name += " " + err.Error()
			}
			entered <- name
			if err == nil {
				leave()
			}
		}()
		for waitingIn(q) == before { // until it stands in the queue
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	wait(t.Context(), "low", "low")
	wait(t.Context(), "first", "")
	wait(t.Context(), "second", "normal")
	wait(ctx, "gone", "high")
	wait(t.Context(), "high", "high")
	cancel()
	if got := <-entered; got != "gone "+context.Canceled.Error() {
		t.Errorf("entered: %s", got)
	}
	leave()
	var got []string
	for range 4 {
		got = append(got, <-entered)
	}
	if want := []string{"high", "first", "second", "low"}; !slices.Equal(got, want) {
		t.Errorf("entered %v, want %v", got, want)
	}
	if leave, err = q.enter(t.Context(), ""); err != nil {
		t.Fatal("the place is not free again")
	}
	if _, err := q.enter(ctx, ""); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	leave()
}

func waitingIn(q *queue) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.waiting)
}
