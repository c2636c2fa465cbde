package agentic

import (
	"context"
	"slices"
	"sync"
)

// queue has places for the nodes that run at once in all runs that one process drives. Who
// waits gets the next free one by priority, then in turn.
type queue struct {
	mu      sync.Mutex // guards the rest
	free    int
	waiting []*waiter // by priority, then by time
}

type waiter struct {
	priority int
	place    chan struct{} // closed with the place
}

// priorities of runs; others are normal.
var priorities = map[string]int{"low": -1, "high": 1}

func newQueue(places int) *queue { return &queue{free: places} }

// enter waits for a place. leave gives it back, once.
func (q *queue) enter(ctx context.Context, priority string) (leave func(), err error) {
	q.mu.Lock()
	w := &waiter{priorities[priority], make(chan struct{})}
	if q.free > 0 {
		q.free--
		close(w.place)
	} else {
		behind := slices.IndexFunc(q.waiting, func(o *waiter) bool { return o.priority < w.priority })
		if behind < 0 {
			behind = len(q.waiting)
		}
		q.waiting = slices.Insert(q.waiting, behind, w)
	}
	q.mu.Unlock()
	select {
	case <-w.place:
		return q.leave, nil
	case <-ctx.Done():
		q.drop(w)
		return nil, ctx.Err()
	}
}

// drop forgets who waits no longer. It may have got its place just now.
func (q *queue) drop(w *waiter) {
	q.mu.Lock()
	at := slices.Index(q.waiting, w)
	if at >= 0 {
		q.waiting = slices.Delete(q.waiting, at, at+1)
	}
	q.mu.Unlock()
	if at < 0 {
		q.leave()
	}
}

func (q *queue) leave() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 {
		q.free++
		return
	}
	close(q.waiting[0].place)
	q.waiting = q.waiting[1:]
}
