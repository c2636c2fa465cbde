package audit

import (
	"testing"

	"aob.dev/writ/policies"
	"aob.dev/writ/state"
)

// TestReplayRemembersItsOwn: the engines of replay and backtest evaluate each distinct question once, over
// each directory, and so find a wrong cache entry of a router; of all decisions one of 64 is
// evaluated once more.
func TestReplayRemembersItsOwn(t *testing.T) {
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
		if hits, misses := e.MemoStats(); hits != 1 || misses != 1 {
			t.Errorf("%d remembered, %d evaluated", hits, misses)
		}
	}
	again := 0
	for position := range int64(64_000) {
		if sampled(position) {
			again++
		}
	}
	if again < 800 || again > 1200 {
		t.Errorf("%d of 64,000 are evaluated again", again)
	}
}
