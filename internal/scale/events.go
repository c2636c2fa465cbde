package scale

import (
	"container/heap"
	"time"
)

// events are what will happen, by its time; things of one time in the order in which they
// were planned.
type events struct {
	now     time.Duration
	planned int
	queue   queue
}

type event struct {
	at    time.Duration
	order int
	do    func()
}

// after plans something.
func (e *events) after(d time.Duration, do func()) {
	e.planned++
	heap.Push(&e.queue, event{e.now + d, e.planned, do})
}

// run has everything happen up to a time.
func (e *events) run(until time.Duration) {
	for len(e.queue) > 0 && e.queue[0].at <= until {
		next := heap.Pop(&e.queue).(event) //nolint:forcetypeassert // the queue holds nothing else
		e.now = next.at
		next.do()
	}
}

type queue []event

func (q queue) Len() int      { return len(q) }
func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(x any)   { *q = append(*q, x.(event)) } //nolint:forcetypeassert // see run
func (q queue) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].order < q[j].order
}

func (q *queue) Pop() any {
	last := len(*q) - 1
	x := (*q)[last]
	*q = (*q)[:last]
	return x
}

// station serves what comes, first in first out, so many at once.
type station struct {
	*events

	servers, busy int
	waiting       []func()
	worked        time.Duration // of all servers
}

// serve has something take so long once a server is free, and then goes on.
func (s *station) serve(d time.Duration, then func()) {
	begin := func() {
		s.worked += d
		s.after(d, func() {
			s.busy--
			if len(s.waiting) > 0 {
				next := s.waiting[0]
				s.waiting = s.waiting[1:]
				s.busy++
				next()
			}
			then()
		})
	}
	if s.busy == s.servers {
		s.waiting = append(s.waiting, begin)
		return
	}
	s.busy++
	begin()
}
