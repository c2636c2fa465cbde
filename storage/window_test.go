package storage

import (
	"testing"
	"time"
)

// TestWindow: nothing younger than KeptFor is cut off, and nothing stays a period longer,
// wherever in its period a record comes; a time that does not advance removes nothing.
func TestWindow(t *testing.T) {
	for _, offset := range []time.Duration{0, time.Millisecond, windowPeriod - time.Millisecond} {
		var w Window
		begin := time.UnixMilli(1_790_000_000_000).Truncate(windowPeriod).Add(offset)
		at := func(position int64) time.Time { return begin.Add(time.Duration(position) * time.Hour) }
		for position := range int64(200) {
			before := w.Cut
			if moved := w.Pass(position, at(position)); moved != (w.Cut > before) {
				t.Fatalf("%d: moved %v from %d to %d", position, moved, before, w.Cut)
			}
			if w.Pass(position, at(position)) {
				t.Fatalf("%d: moves twice at one time", position)
			}
			if w.Cut > 0 && at(position).Sub(at(w.Cut-1)) < KeptFor {
				t.Fatalf("%d: a record of %v ago is old", position, at(position).Sub(at(w.Cut-1)))
			}
			if age := at(position).Sub(at(w.Cut)); age > KeptFor+windowPeriod {
				t.Fatalf("%d: a record of %v ago is not old", position, age)
			}
			if max := int(KeptFor/windowPeriod) + 1; len(w.Periods) > max {
				t.Fatalf("%d: %d periods", position, len(w.Periods))
			}
		}
		if w.Cut == 0 {
			t.Fatal("nothing was ever old")
		}
	}
}
