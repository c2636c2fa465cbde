package datadir

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The name of an executor becomes that of a file, wherever it comes from.
func TestExternalExecutorNames(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	for _, name := range []string{"../x", "x-/../../x", "x-a/b", "x-", "", "python", "x-" + strings.Repeat("a", 31)} {
		if seed, err := Executors.Admit(data, name, []string{"x.acme.echo"}, time.Now()); err == nil || seed != "" {
			t.Errorf("%q is issued credentials", name)
		}
		if err := Executors.Revoke(data, name, time.Now()); err == nil {
			t.Errorf("%q is revoked", name)
		}
	}
	if err := filepath.WalkDir(filepath.Dir(data), func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			t.Errorf("wrote %s", path)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

// A file that cannot be read lets nobody in, and keeps no revocation back.
func TestExternalExecutorUnreadable(t *testing.T) {
	data := t.TempDir()
	if _, err := Executors.Admit(data, "x-acme", []string{"x.acme.echo"}, time.Now()); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(data, "executors", "x-aaa.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Executors.Revoke(data, "x-acme", time.Now()); err != nil {
		t.Fatal(err)
	}
	known, err := Executors.List(data)
	if err == nil || !strings.Contains(err.Error(), "x-aaa.json") {
		t.Errorf("%v", err)
	}
	if len(known) != 1 || known[0].Name != "x-acme" || known[0].Revoked == nil {
		t.Errorf("%+v", known)
	}
}
