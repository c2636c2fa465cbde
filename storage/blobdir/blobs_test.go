package blobdir_test

import (
	"bytes"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"aob.dev/writ/storage"
	"aob.dev/writ/storage/blobdir"
)

func open(t testing.TB, dir string) *blobdir.Blobs {
	t.Helper()
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	b, err := blobdir.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// fill stores a blob and a file and returns every path below dir.
func fill(t *testing.T, b *blobdir.Blobs, dir string) (ref, id string, paths []string) {
	t.Helper()
	ref, _, err := b.Keep(t.Context(), "../tenant", strings.NewReader("kept"))
	if err != nil {
		t.Fatal(err)
	}
	f, err := b.Put(t.Context(), storage.Scope{Tenant: "../tenant", Plan: "../../plan"}, strings.NewReader("put"))
	if err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		paths = append(paths, path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return ref, f.ID, paths
}

func TestOnlyTheOwnerReads(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "blobs")
	_, _, paths := fill(t, open(t, dir), dir)
	files := 0
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		want := fs.FileMode(0o600)
		if info.IsDir() {
			want = 0o700
		} else {
			files++
		}
		if info.Mode().Perm() != want {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		if strings.Contains(path, "tenant") || strings.Contains(path, "plan") {
			t.Errorf("a caller's name is in the path %s", path)
		}
	}
	if files != 2 {
		t.Fatalf("%d files", files)
	}
}

func TestDamageIsFound(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "blobs")
	b := open(t, dir)
	ref, id, paths := fill(t, b, dir)
	for _, path := range paths {
		if info, err := os.Stat(path); err != nil || info.IsDir() {
			continue
		}
		if err := os.WriteFile(path, []byte("forged"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	blob, _, err := b.Fetch(t.Context(), "../tenant", ref)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(blob); err == nil {
		t.Error("a forged blob was read to its end")
	}
	file, _, err := b.Open(t.Context(), storage.Scope{Tenant: "../tenant", Plan: "../../plan"}, id)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(file); err == nil {
		t.Error("a forged file was read to its end")
	}
	for _, c := range []io.Closer{blob, file} {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestSweepAfterCrash: a writer that died left a file, a wipe that
// died left a scope; a writer that lives retains its file.
func TestSweepAfterCrash(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "blobs")
	b := open(t, dir)
	partial := filepath.Join(dir, "partial")
	if err := os.WriteFile(filepath.Join(partial, "DEAD"), []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(partial, "WIPED", "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	r, w := io.Pipe()
	type result struct {
		ref string
		err error
	}
	done := make(chan result)
	go func() {
		ref, _, err := b.Keep(t.Context(), "acme", r)
		done <- result{ref, err}
	}()
	if _, err := w.Write([]byte("first half, ")); err != nil {
		t.Fatal(err)
	}
	removed, err := b.Sweep(t.Context(), time.Hour)
	if err != nil || removed != 2 {
		t.Fatalf("sweep = %d, %v", removed, err)
	}
	if _, err := w.Write([]byte("second half")); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	kept := <-done
	if kept.err != nil {
		t.Fatal(kept.err)
	}
	f, _, err := b.Fetch(t.Context(), "acme", kept.ref)
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(f)
	if err != nil || !bytes.Equal(got, []byte("first half, second half")) {
		t.Fatalf("%q, %v", got, err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(partial)
	if err != nil || len(left) != 0 {
		t.Fatalf("left in partial: %v, %v", left, err)
	}
}
