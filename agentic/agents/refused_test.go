package agents

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/rogpeppe/go-internal/txtar"
)

// environment of the tests.
func environment(name string) string {
	return map[string]string{
		"QUOTED": `x", type: mcp, y: "`, "URL": "https://a.example/mcp", "EMPTY": "", "HALF": "0.5",
	}[name]
}

// tree of an archive.
func tree(a *txtar.Archive) fstest.MapFS {
	dir := fstest.MapFS{}
	for _, f := range a.Files {
		dir[f.Name] = &fstest.MapFile{Data: f.Data}
	}
	return dir
}

// TestRefused: each vector is a registry with one failure. Its comment says what must
// be said of it, after "! ": file, line, pointer, and what to do. The folder system is
// the layer below.
func TestRefused(t *testing.T) {
	names, err := filepath.Glob("testdata/refused/*.txtar")
	if err != nil || len(names) < 120 {
		t.Fatalf("%d vectors, %v", len(names), err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			var want []string
			for line := range strings.Lines(string(a.Comment)) {
				if said, ok := strings.CutPrefix(line, "! "); ok {
					want = append(want, strings.TrimSuffix(said, "\n"))
				}
			}
			got := refusal(t, tree(a))
			if len(got) != len(want) {
				t.Fatalf("%d faults, want %d:\n%v", len(got), len(want), got)
			}
			for i, f := range got {
				// What the compiler of schemas says after the pointer is its own.
				if said := f.Error(); said != want[i] && (!strings.HasSuffix(want[i], ": ") || !strings.HasPrefix(said, want[i])) {
					t.Errorf("said  %s\nwant  %s", said, want[i])
				}
			}
		})
	}
}

func refusal(t *testing.T, dir fs.FS) Faults {
	t.Helper()
	var below []Scopes
	if _, err := fs.Stat(dir, "system"); err == nil {
		sub, err := fs.Sub(dir, "system")
		if err != nil {
			t.Fatal(err)
		}
		r, err := Read(sub, environment)
		if err != nil {
			t.Fatal(err)
		}
		below = append(below, r.Scopes())
	}
	r, err := Read(dir, environment)
	if err == nil {
		err = r.Check(below...)
	}
	var faults Faults
	if !errors.As(err, &faults) {
		t.Fatalf("got %v", err)
	}
	return faults
}
