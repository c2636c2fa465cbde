package audit

import (
	"testing"

	"aob.dev/writ/policies"
	"aob.dev/writ/state"
)

// TestReplayRemembersNothing: the engines of replay and backtest evaluate every
// intent, so that a wrong cache entry of a router is found.
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
		if hits, misses := e.MemoStats(); hits+misses != 0 {
			t.Errorf("%d of %d decisions are remembered", hits, hits+misses)
		}
	}
}
