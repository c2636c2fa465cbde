package sqlite

import (
	"os"
	"testing"
)

// TestOpenClosed: reading a closed journal leaves no file beside it.
func TestOpenClosed(t *testing.T) {
	dir := t.TempDir()
	j, err := OpenJournal(t.Context(), dir, JournalOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := OpenClosed(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(dir); len(left) != 1 || left[0].Name() != "journal.db" {
		t.Errorf("%v, %v", left, err)
	}
}
