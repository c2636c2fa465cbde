package node

import "testing"

// TestRest: memory is returned once after work that allocates, and when the work is over.
func TestRest(t *testing.T) {
	t.Parallel()
	var r rest
	at := uint64(0)
	for i, x := range []struct {
		allocates uint64
		due       bool
	}{
		{worthFreeing + restAllocates, false}, // it works
		{worthFreeing, false},
		{restAllocates, true}, // it rests
		{restAllocates, false},
		{0, false},
		{worthFreeing, false},
		{0, true},
		{restAllocates + 1, false}, // little work
		{0, false},
	} {
		if at += x.allocates; r.due(at) != x.due {
			t.Errorf("look %d: due is %v", i, !x.due)
		}
	}
}
