package layering

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestOneLogger: nothing but internal/logging makes a handler that writes lines, so that
// each line is redacted, and nothing writes with the package log.
func TestOneLogger(t *testing.T) {
	inside := 0
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && d.Name() == "testdata" {
			return fs.SkipDir
		}
		if err != nil || d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return err
		}
		raw, err := os.ReadFile(name)
		for _, way := range []string{"slog.NewJSONHandler(", "slog.NewTextHandler(", "\t\"log\"\n"} {
			if !strings.Contains(string(raw), way) {
				continue
			}
			if strings.Contains(filepath.ToSlash(name), "/internal/logging/") {
				inside++
			} else {
				t.Errorf("%s has %q: use internal/logging", name, way)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if inside == 0 {
		t.Error("internal/logging makes no handler: the test finds nothing")
	}
}
