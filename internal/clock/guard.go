// Package clock checks the wall clock, which any administrator of the machine can set, against a
// monotonic one.
package clock

import (
	"sync"
	"time"
)

// Limit is the deviation of the wall clock from which its dependents stop.
const Limit = time.Minute

// slewed is how much of the elapsed time a clock may be put right by without being
// noticed: one part in sixty is far more than any time service slews, and far less
// than a step.
const slewed = 60

// Guard notices jumps of the wall clock. Safe for concurrent use.
type Guard struct {
	wall    func() time.Time
	elapsed func() time.Duration

	mu     sync.Mutex    // guards the fields below
	offset time.Duration // of the wall clock from the elapsed time, as it should be
	last   time.Duration // elapsed at the last look
	by     time.Duration // of the jump that nobody has confirmed; 0: none
}

// NewGuard trusts the present reading of the wall clock. elapsed must never step.
func NewGuard(wall func() time.Time, elapsed func() time.Duration) *Guard {
	g := &Guard{wall: wall, elapsed: elapsed}
	g.last = elapsed()
	g.offset = g.astray()
	return g
}

// astray is how far the wall clock is from the elapsed time. Only changes of it are meaningful.
func (g *Guard) astray() time.Duration {
	return time.Duration(g.wall().UnixNano()) - g.last
}

// Jump returns by how much the wall clock has jumped, forward if it is positive; 0: it has not. A
// jump stays until it is confirmed, also if the clock is corrected in between: the decisions made
// meanwhile are unknown.
//
// A caller that reads the wall clock first and then calls Jump learns of every jump before that
// reading.
func (g *Guard) Jump() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	before := g.last
	g.last = g.elapsed()
	by := g.astray() - g.offset
	if by.Abs() > Limit && g.by == 0 {
		g.by = by
	}
	if g.by == 0 {
		most := min((g.last-before)/slewed, time.Second)
		g.offset += max(-most, min(by, most))
	}
	return g.by
}

// Confirm trusts the present reading of the wall clock.
func (g *Guard) Confirm() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.last = g.elapsed()
	g.offset, g.by = g.astray(), 0
}
