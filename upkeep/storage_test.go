package upkeep

import (
	"testing"

	"aob.dev/writ/internal/datadir"
)

// TestNothingIsBehind: after a process has ended in order its documents have everything that was
// committed, although the recorder waits for more before it writes.
func TestNothingIsBehind(t *testing.T) {
	dir := t.TempDir()
	for range 5 {
		answered(t, dir)
		if s, err := ReadStorageStatus(t.Context(), dir, datadir.DocumentsAt{}, 0); err != nil || s.Projections.Behind != 0 || s.Journal.Count == 0 {
			t.Fatalf("%+v %v", s, err)
		}
	}
}
