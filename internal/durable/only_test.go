package durable

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// writers of os make or rename files without syncing them.
var writers = []string{"WriteFile", "Create", "CreateTemp", "OpenFile", "Rename", "MkdirAll"}

// others may use them, and why. A path that ends in / covers all below it.
var others = map[string]string{
	"internal/durable/durable.go":   "it syncs",
	"executors/sandbox/":            "a runtime that is made again at every start",
	"bench/":                        "measures",
	"internal/demo/":                "files that are removed at its end",
	"internal/testing/":             "servers for tests",
	"storage/blobdir/blobs.go":      "renames what is synced and syncs the directory, with a failpoint between",
	"storage/blobs3/blobs.go":       "what is on its way to a server",
	"router/httpapi/accesslog.go":   "lines that a crash of the machine may lose",
	"storage/sqlite/keys.go":        "overwrites keys where they stand, and syncs",
	"storage/sqlite/userkeys.go":    "overwrites keys where they stand, and syncs",
	"storage/sqlite/connect.go":     "an empty database, and syncs its directory",
	"upkeep/backup.go":              "syncs each file, and at the end all directories",
	"upkeep/copydocuments.go":       "where blobs pass on their way to a server",
	"internal/datadir/stores.go":    "where blobs pass on their way to a server",
	"internal/datadir/lock_unix.go": "an empty file; the lock is the kernel's",
}

// TestOnlyWriter: whoever writes a file that must survive a power cut does it
// here, so that no place forgets a sync.
func TestOnlyWriter(t *testing.T) {
	root := filepath.Join("..", "..")
	seen := map[string]bool{}
	must(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		name := d.Name()
		if err != nil || d.IsDir() && path != root && (name == "testdata" || name == "node_modules" || strings.HasPrefix(name, ".") && path != root) {
			if err == nil {
				err = fs.SkipDir
			}
			return err
		}
		if d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		file, err := filepath.Rel(root, path)
		must(t, err)
		file = filepath.ToSlash(file)
		for _, call := range writesOf(t, path) {
			if by, ok := covered(file); ok {
				seen[by] = true
			} else {
				t.Errorf("%s uses os.%s: a power cut may undo what it writes; use internal/durable", file, call)
			}
		}
		return nil
	}))
	for by := range others {
		if !seen[by] {
			t.Errorf("%s writes no files any more: take it out of the list", by)
		}
	}
}

func covered(file string) (string, bool) {
	for by := range others {
		if file == by || strings.HasSuffix(by, "/") && strings.HasPrefix(file, by) {
			return by, true
		}
	}
	return "", false
}

// writesOf a source file: the writers that it calls.
func writesOf(t *testing.T, path string) (calls []string) {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	must(t, err)
	ast.Inspect(parsed, func(n ast.Node) bool {
		s, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if from, ok := s.X.(*ast.Ident); ok && from.Name == "os" && slices.Contains(writers, s.Sel.Name) {
			calls = append(calls, s.Sel.Name)
		}
		return true
	})
	return calls
}
