package sandbox

import (
	"context"
	"slices"
	"sync"
)

// queue bounds how many runs there are at one time. Those that wait are served
// in turns by tenant, so that a tenant with a thousand scripts delays another's
// first one by one run, not by a thousand.
type queue struct {
	size    int
	mu      sync.Mutex
	free    int
	waiting map[string][]*ticket // by tenant, oldest first; none is empty
	turn    []string             // tenants that wait, next first
}

// ticket is one run that waits; admitted is closed when its turn comes.
type ticket struct{ admitted chan struct{} }

func newQueue(size int) *queue {
	return &queue{size: size, free: size, waiting: map[string][]*ticket{}}
}

// enter returns when a run of tenant may begin, or with ctx's error. Without an
// error, leave must follow.
func (q *queue) enter(ctx context.Context, tenant string) error {
	q.mu.Lock()
	if q.free > 0 { // then nobody waits
		q.free--
		q.mu.Unlock()
		return nil
	}
	t := &ticket{make(chan struct{})}
	if len(q.waiting[tenant]) == 0 {
		q.turn = append(q.turn, tenant)
	}
	q.waiting[tenant] = append(q.waiting[tenant], t)
	q.mu.Unlock()
	select {
	case <-t.admitted:
		return nil
	case <-ctx.Done():
	}
	if !q.withdraw(tenant, t) {
		q.leave() // admitted in the same moment
	}
	return ctx.Err()
}

// running is the number of runs under way.
func (q *queue) running() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.size - q.free
}

// leave ends a run and admits the next.
func (q *queue) leave() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.turn) == 0 {
		q.free++
		return
	}
	tenant := q.turn[0]
	q.turn = q.turn[1:]
	list := q.waiting[tenant]
	close(list[0].admitted)
	if len(list) == 1 {
		delete(q.waiting, tenant)
		return
	}
	q.waiting[tenant] = list[1:]
	q.turn = append(q.turn, tenant)
}

// withdraw removes a ticket; false: it was admitted.
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
