// Package ratelimit is a token bucket per caller: so many requests per
// window, refilled evenly, for a bounded number of callers.
package ratelimit

import (
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"golang.org/x/time/rate"
)

// Limiter keeps the buckets of the callers seen last. If there are too many callers, it
// forgets the one not seen for longest, who then begins with a full bucket. So memory is
// bounded, and only callers who stay away gain by it.
type Limiter struct {
	limit rate.Limit
	burst int
	now   func() time.Time

	mu      sync.Mutex // guards buckets
	buckets *simplelru.LRU[string, *rate.Limiter]
}

// New allows requests per window to each of at most callers callers. It is nil, which
// limits nobody, if requests is negative.
func New(requests int, window time.Duration, callers int, now func() time.Time) *Limiter {
	if requests < 0 {
		return nil
	}
	buckets, _ := simplelru.NewLRU[string, *rate.Limiter](max(callers, 1), nil) // fails only for less than 1
	return &Limiter{limit: rate.Limit(float64(requests) / window.Seconds()), burst: requests, now: now, buckets: buckets}
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
	b, ok := l.buckets.Peek(key)
	if !ok {
		return 0, false
	}
	r := b.ReserveN(now, 1)
	defer r.CancelAt(now)
	wait := r.DelayFrom(now)
	return wait, wait > 0
}

func (l *Limiter) bucket(key string) *rate.Limiter {
	b, ok := l.buckets.Get(key)
	if !ok {
		b = rate.NewLimiter(l.limit, l.burst)
		l.buckets.Add(key, b)
	}
	return b
}
