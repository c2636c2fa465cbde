package judge

import (
	"fmt"
	"testing"

	"aob.dev/writ/storage"
)

func TestRecentForgetsTheOldest(t *testing.T) {
	r := newRecent()
	for i := range 3*storage.RememberCommits + 5 {
		r.add(Committed{fmt.Sprint(i), int64(i), 1})
	}
	if len(r.byID) != storage.RememberCommits || len(r.ring) != storage.RememberCommits {
		t.Fatalf("remembers %d in a ring of %d", len(r.byID), len(r.ring))
	}
	for i, want := range map[int]bool{2*storage.RememberCommits + 4: false, 2*storage.RememberCommits + 5: true, 3*storage.RememberCommits + 4: true} {
		if _, got := r.byID[fmt.Sprint(i)]; got != want {
			t.Errorf("remembers commit %d: %v", i, got)
		}
	}
}
