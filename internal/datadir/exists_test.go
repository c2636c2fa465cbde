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
	if err := Confirm(t.Context(), missing, Confirmable[0], time.Now); err == nil || !strings.Contains(err.Error(), "no data directory") {
		t.Error(err)
	}
	if _, err := os.Stat(missing); !errors.Is(err, fs.ErrNotExist) {
		t.Error("it was made")
	}
}
