package rootdir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestOnlyItsOwnFiles: whatever a link or a pipe is named, nothing of it is read.
func TestOnlyItsOwnFiles(t *testing.T) {
	outside := t.TempDir()
	write(t, filepath.Join(outside, "key"), "private")
	dir := t.TempDir()
	write(t, filepath.Join(dir, "sub", "own"), "mine")
	for name, to := range map[string]string{
		"out": filepath.Join(outside, "key"), "away": outside, "up": filepath.Join("..", filepath.Base(outside), "key"),
		"within": "sub/own", "folder": "sub", "sub/again": "own", "nowhere": "none", "..data": filepath.Join("sub"), "own": "..data/own",
	} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	d := open(t, dir)
	if text, err := fs.ReadFile(d, "sub/own"); err != nil || string(text) != "mine" {
		t.Errorf("%q, %v", text, err)
	}
	for _, name := range []string{"out", "away/key", "away", "up", "within", "folder/own", "sub/again", "nowhere", "own", "..data/own", "pipe"} {
		if text, err := fs.ReadFile(d, name); !errors.Is(err, ErrNotPlain) {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
	for _, name := range []string{"../" + filepath.Base(outside) + "/key", "/etc/passwd", "none"} {
		if text, err := fs.ReadFile(d, name); err == nil {
			t.Errorf("%s: %q", name, text)
		}
	}
}

// TestMountedMap: the files of a Kubernetes ConfigMap are links, and are read.
func TestMountedMap(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "..2026_11_28", "a.yaml"), "a")
	write(t, filepath.Join(dir, "..2026_11_28", "prompts", "b.md"), "b")
	for name, to := range map[string]string{"..data": "..2026_11_28", "a.yaml": "..data/a.yaml", "prompts": "..data/prompts"} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	d := open(t, dir)
	for name, want := range map[string]string{"a.yaml": "a", "prompts/b.md": "b"} {
		if text, err := fs.ReadFile(d, name); err != nil || string(text) != want {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
}

// TestNoDirectory: a pipe and a file in place of the directory are refused, and not waited for.
func TestNoDirectory(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "file"), "text")
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"file", "pipe"} {
		if _, err := Open(filepath.Join(dir, name)); !errors.Is(err, syscall.ENOTDIR) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func open(t *testing.T, dir string) *Dir {
	t.Helper()
	d, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
