package durable

import (
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func has(t *testing.T, path, want string) {
	t.Helper()
	got, err := os.ReadFile(path)
	must(t, err)
	if string(got) != want {
		t.Errorf("%s holds %q, not %q", filepath.Base(path), got, want)
	}
}

func TestWriteReplaces(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(path+partSuffix, []byte("of a write that was cut off"), 0o644))
	for _, text := range []string{"first, and longer", "second"} {
		must(t, Write(path, []byte(text)))
		has(t, path, text)
	}
	info, err := os.Stat(path)
	must(t, err)
	if info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}
	if _, err := os.Stat(path + partSuffix); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a part is left: %v", err)
	}
}

// What fails half way changes nothing and leaves nothing.
func TestStreamFails(t *testing.T) {
	path, broken := filepath.Join(t.TempDir(), "file"), errors.New("broken")
	must(t, Write(path, []byte("before")))
	err := Stream(path, func(w io.Writer) error {
		_, _ = w.Write([]byte("half"))
		return broken
	})
	if !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
	has(t, path, "before")
	if _, err := os.Stat(path + partSuffix); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a part is left: %v", err)
	}
}

func TestNewKeepsExistingFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	must(t, New(path, []byte("first")))
	if err := New(path, []byte("second")); !errors.Is(err, fs.ErrExist) {
		t.Errorf("%v", err)
	}
	has(t, path, "first")
}

// What a reader cannot give leaves no file; what it gives is there with its digest.
func TestReceive(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	broken := errors.New("broken")
	if _, _, err := Receive(path, io.MultiReader(strings.NewReader("half"), iotest.ErrReader(broken))); !errors.Is(err, broken) {
		t.Fatal(err)
	}
	size, sum, err := Receive(path, strings.NewReader("whole"))
	if err != nil || size != 5 || sum != sha256.Sum256([]byte("whole")) {
		t.Fatalf("%d, %x, %v", size, sum, err)
	}
	if _, _, err := Receive(path, strings.NewReader("again")); !errors.Is(err, fs.ErrExist) {
		t.Fatal(err)
	}
	if raw, err := os.ReadFile(path); err != nil || string(raw) != "whole" {
		t.Fatalf("%q, %v", raw, err)
	}
}

func TestMkdirAll(t *testing.T) {
	dir := t.TempDir()
	for range 2 {
		must(t, MkdirAll(filepath.Join(dir, "a", "b")))
	}
	must(t, New(filepath.Join(dir, "file"), nil))
	if err := MkdirAll(filepath.Join(dir, "file")); !errors.Is(err, syscall.ENOTDIR) {
		t.Errorf("a file in the way: %v", err)
	}
}

func TestRemove(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	must(t, New(path, nil))
	for range 2 {
		must(t, Remove(path))
	}
}

// TestNoFile: what is no file is not replaced by one, and nothing is left beside it.
func TestNoFile(t *testing.T) {
	dir := t.TempDir()
	for name, put := range map[string]func(string) error{
		"pipe":      func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"link":      func(path string) error { return os.Symlink(os.DevNull, path) },
		"directory": func(path string) error { return os.Mkdir(path, 0o700) },
	} {
		path := filepath.Join(dir, name)
		if err := put(path); err != nil {
			t.Fatal(err)
		}
		before, err := os.Lstat(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := Write(path, []byte("text")); !errors.Is(err, ErrNoFile) {
			t.Errorf("%s: %v", name, err)
		}
		if after, err := os.Lstat(path); err != nil || after.Mode() != before.Mode() {
			t.Errorf("%s: %v, %v", name, after, err)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 3 {
		t.Errorf("%v, %v", left, err)
	}
}
