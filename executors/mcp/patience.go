package mcp

import (
	"context"
	"sync"
	"time"
)

// patience ends an attempt of a call that has neither an answer nor progress for a while. Safe for
// concurrent use.
type patience struct {
	limit time.Duration
	again bool // an attempt that was late is repeated

	mu    sync.Mutex
	timer *time.Timer // of the present attempt; nil: there is none
}

// begin derives the context of an attempt. It ends with context.DeadlineExceeded as its cause.
func (p *patience) begin(ctx context.Context) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(p.limit, func() { cancel(context.DeadlineExceeded) })
	p.mu.Lock()
	p.timer = timer
	p.mu.Unlock()
	return ctx, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.timer = nil
		timer.Stop()
		cancel(nil)
	}
}

// renew has the attempt wait as long again.
func (p *patience) renew() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.timer != nil && p.timer.Stop() { // it has not ended
		p.timer.Reset(p.limit)
	}
}
