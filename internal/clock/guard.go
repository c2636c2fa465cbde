// Package clock watches the wall clock, which anybody who administers the machine
// can set, against one that only runs forward.
package clock

import (
	"sync"
	"time"
)

// Limit is how far the wall clock may go astray before what depends on it stops.
const Limit = time.Minute

// slewed is how much of the elapsed time a clock may be put right by without being
// noticed: one part in sixty is far more than any time service slews, and far less
// than a step.
const slewed = 60

// Guard notices jumps of the wall clock. Safe for concurrent use.
type Guard struct {
	wall    func() time.Time
	elapsed func() time.Duration

	mu     sync.Mutex    // guards what follows
	offset time.Duration // of the wall clock from the elapsed time, as it should be
	seen   time.Duration // elapsed at the last look
	by     time.Duration // of the jump that nobody has confirmed; 0: none
}

// NewGuard believes what the wall clock shows now. elapsed must never step.
func NewGuard(wall func() time.Time, elapsed func() time.Duration) *Guard {
	g := &Guard{wall: wall, elapsed: elapsed}
	g.seen = elapsed()
	g.offset = g.astray()
	return g
}

// astray is how far the wall clock is from the elapsed time. Only how this changes
// says anything.
func (g *Guard) astray() time.Duration {
	return time.Duration(g.wall().UnixNano()) - g.seen
}

// Jumped says by how much the wall clock has jumped, forward if it is positive;
// 0: it has not. A jump stays until it is confirmed, also if the clock is put
// right in between: what was decided then is not known.
//
// Who has read the wall clock and asks then learns of every jump from before
// that reading.
func (g *Guard) Jumped() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	before := g.seen
	g.seen = g.elapsed()
	by := g.astray() - g.offset
	if by.Abs() > Limit && g.by == 0 {
		g.by = by
	}
	if g.by == 0 {
		most := min((g.seen-before)/slewed, time.Second)
		g.offset += max(-most, min(by, most))
	}
	return g.by
}

// Confirm believes what the wall clock shows now.
func (g *Guard) Confirm() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.seen = g.elapsed()
	g.offset, g.by = g.astray(), 0
}
