package jetstream

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestLost: a router is lost when it was silent for lostAfter beats in which this one
// received its own, and not before.
func TestLost(t *testing.T) {
	j := &Journal{options: Options{Instance: "me"}, index: &StreamIndex{owners: map[int64]string{1: "me", 2: "other", 3: "never heard"}}}
	r := NewRouters(j)
	lost := func() (positions []int64) {
		for p := range int64(5) {
			if r.Lost(p) {
				positions = append(positions, p)
			}
		}
		return positions
	}
	beats := func(n int, heard ...string) {
		for range n {
			for _, instance := range heard {
				r.markAlive(instance)
			}
			r.count()
		}
	}
	for _, step := range []struct {
		what  string
		beats func()
		want  []int64
	}{
		{"at first", func() {}, nil},
		{"both live", func() { beats(3*lostAfter, "me", "other", "never heard") }, nil},
		{"they were silent", func() { beats(lostAfter-2, "me") }, nil},
		{"one has come back", func() { beats(1, "me", "other") }, []int64{3}},
		{"this router was cut off, or held", func() { beats(10 * lostAfter) }, []int64{3}},
		{"it is back", func() { beats(lostAfter-1, "me") }, []int64{2, 3}},
		{"the others are", func() { beats(1, "me", "other", "never heard") }, nil},
	} {
		step.beats()
		if d := cmp.Diff(step.want, lost()); d != "" {
			t.Errorf("%s: -want +got:\n%s", step.what, d)
		}
	}
}
