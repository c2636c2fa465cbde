package datadir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestNoDataDirectory: whoever names a wrong directory is told that there is none, and what to
// type; nothing is made there.
func TestNoDataDirectory(t *testing.T) {
	missing, empty := filepath.Join(t.TempDir(), "missing"), t.TempDir()
	for _, dir := range []string{missing, empty} {
		_, err := OpenArchive(t.Context(), dir)
		if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "--data") || !strings.Contains(err.Error(), "writ up") || strings.Contains(err.Error(), ".pem") {
			t.Errorf("%s: %v", dir, err)
		}
	}
	file := filepath.Join(empty, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenArchive(t.Context(), file); err == nil || !strings.Contains(err.Error(), "cannot be read") || strings.Contains(err.Error(), "writ up") {
		t.Errorf("a file in its place: %v", err)
	}
	if err := Confirm(t.Context(), missing, Confirmable[0], time.Now); err == nil || !strings.Contains(err.Error(), "no data directory") {
		t.Error(err)
	}
	if _, err := os.Stat(missing); !errors.Is(err, fs.ErrNotExist) {
		t.Error("it was made")
	}
}
