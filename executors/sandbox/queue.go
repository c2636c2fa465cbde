package sandbox

import (
	"context"
	"errors"
	"slices"
	"sync"
)

// Errors of Run when a run did not get its turn. No sandbox was started.
var (
	ErrClosed = errors.New("sandbox is closed")
	ErrBusy   = errors.New("too many runs wait for their turn")
)

// maxWaiting bounds the waiting runs of one tenant. More would wait longer than their callers do,
// and each retains its intent and its input meanwhile.
const maxWaiting = 64

// queue bounds how many runs there are at one time. No tenant has all of them, so that
// the first run of another finds a place or waits for the end of one run. Waiting runs
// are served in turns by tenant, so that a tenant with a thousand scripts delays
// another's by one run, not by a thousand.
type queue struct {
	size  int
	share int // the most that one tenant may have

	mu      sync.Mutex // guards the fields below
	free    int
	stopped bool                 // no run is admitted any more
	running map[string]int       // by tenant; none is 0
	waiting map[string][]*ticket // by tenant, oldest first; none is empty
	turn    []string             // tenants that wait, next first
}

// ticket is one run that waits. It gets one answer: nil when its turn comes.
type ticket struct{ answer chan error }

func newQueue(size int) *queue {
	return &queue{size: size, share: max(1, size-1), free: size, running: map[string]int{}, waiting: map[string][]*ticket{}}
}

// enter returns when a run of tenant may begin, or with ctx's error, ErrBusy or
// ErrClosed. Without an error, leave must follow.
func (q *queue) enter(ctx context.Context, tenant string) error {
	t, err := q.begin(tenant)
	if t == nil || err != nil {
		return err
	}
	select {
	case err := <-t.answer:
		return err
	case <-ctx.Done():
	}
	if !q.withdraw(tenant, t) && <-t.answer == nil {
		q.leave(tenant) // admitted in the same moment
	}
	return ctx.Err()
}

// begin admits a run at once, or gives it a ticket.
func (q *queue) begin(tenant string) (*ticket, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.stopped:
		return nil, ErrClosed
	case q.free > 0 && q.running[tenant] < q.share: // then no waiting run could go first
		q.admit(tenant)
		return nil, nil
	case len(q.waiting[tenant]) >= maxWaiting:
		return nil, ErrBusy
	}
	t := &ticket{make(chan error, 1)}
	if len(q.waiting[tenant]) == 0 {
		q.turn = append(q.turn, tenant)
	}
	q.waiting[tenant] = append(q.waiting[tenant], t)
	return t, nil
}

// admit counts a run in. The caller holds mu.
func (q *queue) admit(tenant string) {
	q.free--
	q.running[tenant]++
}

// inUse is the number of runs under way.
func (q *queue) inUse() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.size - q.free
}

// load is the number of runs under way, and of those that wait.
func (q *queue) load() (running, waiting int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, tickets := range q.waiting {
		waiting += len(tickets)
	}
	return q.size - q.free, waiting
}

// leave ends a run and admits the next.
func (q *queue) leave(tenant string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.free++
	if q.running[tenant]--; q.running[tenant] == 0 {
		delete(q.running, tenant)
	}
	// The tenants before it have their share: they keep their places in turn.
	i := slices.IndexFunc(q.turn, func(name string) bool { return q.running[name] < q.share })
	if i < 0 {
		return
	}
	next := q.turn[i]
	q.turn = slices.Delete(q.turn, i, i+1)
	list := q.waiting[next]
	q.admit(next)
	list[0].answer <- nil
	if len(list) == 1 {
		delete(q.waiting, next)
		return
	}
	q.waiting[next] = list[1:]
	q.turn = append(q.turn, next)
}

// withdraw removes a ticket; false: it has its answer.
func (q *queue) withdraw(tenant string, t *ticket) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	list := q.waiting[tenant]
	i := slices.Index(list, t)
	if i < 0 {
		return false
	}
	if list = slices.Delete(list, i, i+1); len(list) > 0 {
		q.waiting[tenant] = list
		return true
	}
	delete(q.waiting, tenant)
	q.turn = slices.DeleteFunc(q.turn, func(name string) bool { return name == tenant })
	return true
}

// stop refuses all runs that wait and all that come later.
func (q *queue) stop() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.stopped = true
	for _, list := range q.waiting {
		for _, t := range list {
			t.answer <- ErrClosed
		}
	}
	clear(q.waiting)
	q.turn = nil
}
