// Package ratelimit is a token bucket per caller: so many requests per
// window, refilled evenly, for a bounded number of callers.
package ratelimit

import (
	"container/list"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Limiter keeps the buckets of the callers seen last. Of more callers than it
// has room for it forgets the one not seen longest, who then begins with a full
// bucket: memory is bounded, and only who stays away gains by it.
type Limiter struct {
	limit rate.Limit
	burst int
	max   int
	now   func() time.Time

	mu      sync.Mutex // guards the two below, which hold the same buckets
	buckets map[string]*list.Element
	recent  *list.List // front: seen last
}

type bucket struct {
	key string
	lim *rate.Limiter
}

// New allows requests per window to each of at most callers callers. It is nil, which
// limits nobody, if requests is negative.
func New(requests int, window time.Duration, callers int, now func() time.Time) *Limiter {
	if requests < 0 {
		return nil
	}
	return &Limiter{
		limit: rate.Limit(float64(requests) / window.Seconds()), burst: requests, max: callers, now: now,
		buckets: make(map[string]*list.Element), recent: list.New(),
	}
}

// Allow takes a token of a caller's bucket. If there is none, it says when there will be.
func (l *Limiter) Allow(key string) (retryAfter time.Duration, ok bool) {
	if l == nil {
		return 0, true
	}
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.bucket(key).ReserveN(now, 1)
	if wait := r.DelayFrom(now); wait > 0 {
		r.CancelAt(now)
		return wait, false
	}
	return 0, true
}

// Spent says whether a caller has no token, without taking one.
func (l *Limiter) Spent(key string) (retryAfter time.Duration, spent bool) {
	if l == nil {
		return 0, false
	}
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	e, ok := l.buckets[key]
	if !ok {
		return 0, false
	}
	r := e.Value.(*bucket).lim.ReserveN(now, 1) //nolint:forcetypeassert // the list holds nothing else
	defer r.CancelAt(now)
	wait := r.DelayFrom(now)
	return wait, wait > 0
}

func (l *Limiter) bucket(key string) *rate.Limiter {
	if e, ok := l.buckets[key]; ok {
		l.recent.MoveToFront(e)
		return e.Value.(*bucket).lim //nolint:forcetypeassert // the list holds nothing else
	}
	if len(l.buckets) >= l.max {
		last := l.recent.Back()
		l.recent.Remove(last)
		delete(l.buckets, last.Value.(*bucket).key) //nolint:forcetypeassert // the list holds nothing else
	}
	b := &bucket{key, rate.NewLimiter(l.limit, l.burst)}
	l.buckets[key] = l.recent.PushFront(b)
	return b.lim
}
