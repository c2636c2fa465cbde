package storage

import (
	"context"
	"fmt"
	"sync"
	"time"

	"aob.dev/writ/internal/clock"
)

// Progress is the position that a follower of the journal has reached. Safe for concurrent
// use.
type Progress struct {
	wake  chan struct{}
	began time.Time // when Gather returned last; of its caller

	mu      sync.Mutex    // guards what follows
	reached int64         // position after the last record that was read
	moved   chan struct{} // closed whenever reached changes
}

// NewProgress has reached nothing.
func NewProgress() *Progress {
	return &Progress{wake: make(chan struct{}, 1), moved: make(chan struct{})}
}

// Wake signals new records. It never blocks.
func (p *Progress) Wake() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// Notify receives once there are new records, for the one who follows.
func (p *Progress) Notify() <-chan struct{} { return p.wake }

// Gather waits at least gathering for more records, and at most mostGathering. What is read here is
// for people, not for decisions, so that a moment later does no harm.
const (
	gathering     = 30 * time.Millisecond
	mostGathering = 150 * time.Millisecond
)

// Gather waits until there are new records, and a moment for more of them: many commits of
// the journal become one of the reader. The moment is as long as the caller took for the last
// ones, so that under load it works half of the time at most. The error is that of ctx. One
// goroutine calls it.
func (p *Progress) Gather(ctx context.Context) error {
	more := gathering
	if !p.began.IsZero() {
		more = min(max(time.Since(p.began), gathering), mostGathering)
	}
	defer func() { p.began = time.Now() }()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-p.wake:
		return clock.Sleep(ctx, more)
	}
}

// Reached is the position after the last record that was read.
func (p *Progress) Reached() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.reached
}

// Move reports that every record before a position was read.
func (p *Progress) Move(position int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reached = position
	close(p.moved)
	p.moved = make(chan struct{})
}

// Reach waits until every record before a position was read. The error is that of ctx.
func (p *Progress) Reach(ctx context.Context, position int64) error {
	for {
		p.mu.Lock()
		reached, moved := p.reached, p.moved
		p.mu.Unlock()
		if reached >= position {
			return nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return fmt.Errorf("%d of %d records are read: %w", reached, position, ctx.Err())
		}
	}
}

// Followers follow a journal, and are woken by new records. The zero value has none, and is safe for
// concurrent use.
type Followers struct {
	mu  sync.Mutex // guards all
	all []*Progress
}

// Add one who follows. There may be records already.
func (f *Followers) Add(p *Progress) {
	f.mu.Lock()
	f.all = append(f.all, p)
	f.mu.Unlock()
	p.Wake()
}

// Wake signals new records to all.
func (f *Followers) Wake() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range f.all {
		p.Wake()
	}
}
