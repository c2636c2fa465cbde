package datadir

import (
	"slices"
	"testing"

	"aob.dev/writ/storage"
)

// The sample has the newest record and all that the directory rests on.
func TestSample(t *testing.T) {
	at := sampleOf([]int64{0, 3, 5}, 1000)
	for _, want := range []int64{0, 3, 5, 999} {
		if !slices.Contains(at, want) {
			t.Errorf("%d is not looked at", want)
		}
	}
	if len(at) < sampled/2 || at[0] != 0 || slices.Max(at) >= 1000 || storage.NoPosition == at[0] {
		t.Errorf("%v", at)
	}
}
