//go:build linux && (amd64 || arm64)

package sandbox

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// smallRuntime is a finished runtime of a few files.
func smallRuntime(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), readyPrefix+"3.11.0-x")
	for _, name := range []string{"usr/lib/a.py", "usr/lib/b.py", "lib/loader"} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte("text"), 0o444)); err != nil {
			t.Fatal(err)
		}
	}
	if err := finishRuntime(dir, image{Python: "3.11.0", Loader: "lib/loader"}); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestRuntimeIsWhole: a runtime of which something is missing, cut or added is not
// used but made again, unless somebody works in it.
func TestRuntimeIsWhole(t *testing.T) {
	for name, change := range map[string]func(dir string) error{
		"missing": func(dir string) error { return os.Remove(filepath.Join(dir, "usr/lib/b.py")) },
		"cut":     func(dir string) error { return os.Truncate(filepath.Join(dir, "usr/lib/b.py"), 2) },
		"added":   func(dir string) error { return os.WriteFile(filepath.Join(dir, "usr/lib/c.py"), nil, 0o444) },
		"emptied": func(dir string) error { return os.RemoveAll(filepath.Join(dir, "usr")) },
		"no task": func(dir string) error { return os.RemoveAll(filepath.Join(dir, taskDir)) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := smallRuntime(t)
			held, err := newScratch(dir)
			if err != nil {
				t.Fatal(err)
			}
			if rt, err := readyRuntime(dir); err != nil || rt.image.Python != "3.11.0" {
				t.Fatalf("%+v, %v", rt, err)
			}
			if name != "no task" {
				if err := change(dir); err != nil {
					t.Fatal(err)
				}
				if _, err := readyRuntime(dir); !errors.Is(err, errIncomplete) || errors.Is(err, fs.ErrNotExist) {
					t.Errorf("in use: %v", err)
				}
			}
			if err := held.close(); err != nil {
				t.Fatal(err)
			}
			if name == "no task" {
				if err := change(dir); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := readyRuntime(dir); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("not in use: %v", err)
			}
			if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("it is still there: %v", err)
			}
		})
	}
}

// TestOwnDirectoryCannotBeReplaced: in a directory that all may write to somebody else
// cannot make ours first.
func TestOwnDirectoryCannotBeReplaced(t *testing.T) {
	tmp := t.TempDir()
	if err := os.Chmod(tmp, 0o777); err != nil {
		t.Fatal(err)
	}
	if dir, err := ownBelow(tmp); err == nil {
		t.Errorf("%s in a directory in which others may rename it", dir)
	}
	if err := os.Chmod(tmp, 0o777|fs.ModeSticky); err != nil {
		t.Fatal(err)
	}
	first, err := ownBelow(tmp)
	if err != nil {
		t.Fatal(err)
	}
	decoys := []string{strings.TrimRight(first, "0123456789"), first + "0", strings.TrimRight(first, "0123456789") + "!"}
	for _, decoy := range decoys {
		// Such as others could have made; root can make them others'.
		if err := errors.Join(os.Mkdir(decoy, 0o777), os.Chmod(decoy, 0o777)); err != nil {
			t.Fatal(err)
		}
	}
	if again, err := ownBelow(tmp); err != nil || again != first {
		t.Errorf("%s, then %s, %v", first, again, err)
	}
	if err := os.Remove(first); err != nil {
		t.Fatal(err)
	}
	if other, err := ownBelow(tmp); err != nil || checkOwned(other) != nil {
		t.Errorf("%s, %v", other, err)
	}
}
