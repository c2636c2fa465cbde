package clock

import (
	"testing"
	"time"
)

// fake is a machine whose two clocks a test moves.
type fake struct {
	wall    time.Time
	elapsed time.Duration
}

func (f *fake) guard() *Guard {
	f.wall = time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	return NewGuard(func() time.Time { return f.wall }, func() time.Duration { return f.elapsed })
}

func (f *fake) pass(d time.Duration) { f.wall, f.elapsed = f.wall.Add(d), f.elapsed+d }

func TestGuardJumps(t *testing.T) {
	for _, by := range []time.Duration{-time.Hour, time.Hour, -61 * time.Second, 61 * time.Second, 400 * 24 * time.Hour} {
		var f fake
		g := f.guard()
		f.pass(time.Hour)
		if g.Jump() != 0 {
			t.Fatal("time that passes is a jump")
		}
		f.wall = f.wall.Add(by)
		if got := g.Jump(); (got - by).Abs() > time.Second {
			t.Errorf("a jump of %v is one of %v", by, got)
		}
		f.wall = f.wall.Add(-by)
		f.pass(time.Minute)
		if g.Jump() == 0 {
			t.Errorf("a jump of %v is forgotten when the clock is put right", by)
		}
		g.Confirm()
		if g.Jump() != 0 {
			t.Errorf("a jump of %v stays after it was confirmed", by)
		}
	}
}

// Small steps add up; what a time service slews does not.
func TestGuardSmallSteps(t *testing.T) {
	var f fake
	g := f.guard()
	for range 24 * 3600 {
		f.pass(time.Second)
		f.wall = f.wall.Add(500 * time.Microsecond)
		if by := g.Jump(); by != 0 {
			t.Fatalf("slewing is a jump of %v", by)
		}
	}
	steps := 0
	for g.Jump() == 0 && steps < 10 {
		f.pass(time.Second)
		f.wall = f.wall.Add(-40 * time.Second)
		steps++
	}
	if steps != 2 {
		t.Errorf("%d steps of 40 s are no jump", steps)
	}
}

func TestElapsedRunsForward(t *testing.T) {
	before := Elapsed()
	if after := Elapsed(); after < before || before < 0 {
		t.Errorf("%v after %v", after, before)
	}
}
