package audit

import (
	"testing"

	"aob.dev/writ/policies"
	"aob.dev/writ/state"
)

// TestReplayRemembersNothing: the engines of replay and backtest evaluate every
// order, so that what a router remembered wrongly comes out.
func TestReplayRemembersNothing(t *testing.T) {
	base, err := policies.New(t.Context(), policies.Embedded())
	if err != nil {
		t.Fatal(err)
	}
	r := newReplayer(base)
	for _, dir := range []*state.Directory{state.New().Directory(), state.New().Directory()} {
		e, err := r.engine(t.Context(), "", dir)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if _, err := e.Decide(t.Context(), map[string]any{"intent": map[string]any{"type": "plan"}}); err != nil {
				t.Fatal(err)
			}
		}
		if hits, misses := e.Remembered(); hits+misses != 0 {
			t.Errorf("%d of %d decisions are remembered", hits, hits+misses)
		}
	}
}
