// Package ratelimit bounds shared resources: a token bucket per caller, so many requests per
// window, refilled evenly, and tables whose places are shared by tenant and key.
package ratelimit

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Caller is whose bucket it is: one of the names that a key of a tenant makes.
type Caller struct{ Tenant, Key, Name string }

// id of the caller's bucket. The parts have no line ends.
func (c Caller) id() string { return c.Tenant + "\n" + c.Key + "\n" + c.Name }

// Limiter has the buckets of the most recent callers, within the shares of their tenants and keys.
// An evicted bucket begins full again: so of a full share, only callers of that share who stay away
// gain by it.
type Limiter struct {
	limit rate.Limit
	burst int
	now   func() time.Time

	mu      sync.Mutex // guards buckets
	buckets *Table[*rate.Limiter]
}

// New allows requests per window to each caller, and remembers as many as the shares have. It is
// nil, which limits nobody, if requests is negative.
func New(requests int, window time.Duration, shares Shares, now func() time.Time) *Limiter {
	if requests < 0 {
		return nil
	}
	return &Limiter{limit: rate.Limit(float64(requests) / window.Seconds()), burst: requests, now: now, buckets: NewTable[*rate.Limiter](shares, nil)}
}

// Allow takes a token of a caller's bucket. If there is none, it returns when there will be.
func (l *Limiter) Allow(c Caller) (retryAfter time.Duration, ok bool) {
	if l == nil {
		return 0, true
	}
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.bucket(c).ReserveN(now, 1)
	if wait := r.DelayFrom(now); wait > 0 {
		r.CancelAt(now)
		return wait, false
	}
	return 0, true
}

// Exhausted reports whether a caller has no token, without taking one.
func (l *Limiter) Exhausted(c Caller) (retryAfter time.Duration, spent bool) {
	if l == nil {
		return 0, false
	}
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	b, ok := l.buckets.Peek(c.id())
	if !ok {
		return 0, false
	}
	r := b.ReserveN(now, 1)
	defer r.CancelAt(now)
	wait := r.DelayFrom(now)
	return wait, wait > 0
}

func (l *Limiter) bucket(c Caller) *rate.Limiter {
	b, ok := l.buckets.Get(c.id())
	if !ok {
		b = rate.NewLimiter(l.limit, l.burst)
		l.buckets.Put(c.id(), c.Tenant, c.Key, 1, b)
	}
	return b
}
