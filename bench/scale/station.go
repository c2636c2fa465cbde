package scale

import (
	"slices"
	"time"
)

// events are what will happen: the latest first, and of one time what was planned last.
type events struct {
	now   time.Duration
	queue []event
}

type event struct {
	at time.Duration
	do func()
}

// after plans something.
func (e *events) after(d time.Duration, do func()) {
	at := e.now + d
	i, _ := slices.BinarySearchFunc(e.queue, at, func(x event, at time.Duration) int {
		if x.at > at {
			return -1
		}
		return 1
	})
	e.queue = slices.Insert(e.queue, i, event{at, do})
}

// run has happen what is planned up to a time.
func (e *events) run(until time.Duration) {
	for n := len(e.queue) - 1; n >= 0 && e.queue[n].at <= until; n = len(e.queue) - 1 {
		next := e.queue[n]
		e.queue, e.now = e.queue[:n], next.at
		next.do()
	}
}

// station serves what comes, first in first out, so many at once.
type station struct {
	*events

	free    int
	waiting []func()
	worked  time.Duration // of all servers
}

// serve has something take so long once a server is free, and then goes on.
func (s *station) serve(d time.Duration, then func()) {
	begin := func() {
		s.free--
		s.worked += d
		s.after(d, func() {
			s.free++
			if len(s.waiting) > 0 {
				next := s.waiting[0]
				s.waiting = s.waiting[1:]
				next()
			}
			then()
		})
	}
	if s.free == 0 {
		s.waiting = append(s.waiting, begin)
		return
	}
	begin()
}
