package node

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"aob.dev/writ/internal/durable"
)

// The name of an executor becomes that of a file, wherever it comes from.
func TestOutsiderNames(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	for _, name := range []string{"../x", "x-/../../x", "x-a/b", "x-", "", "python", "x-" + strings.Repeat("a", 31)} {
		if seed, err := IssueOutsider(data, name, []string{"x.acme.echo"}, time.Now()); err == nil || seed != "" {
			t.Errorf("%q is issued credentials", name)
		}
		if err := RevokeOutsider(data, name, time.Now()); err == nil {
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
func TestOutsiderUnreadable(t *testing.T) {
	data := t.TempDir()
	if _, err := IssueOutsider(data, "x-acme", []string{"x.acme.echo"}, time.Now()); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(data, "executors", "x-aaa.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := RevokeOutsider(data, "x-acme", time.Now()); err != nil {
		t.Fatal(err)
	}
	known, err := Outsiders(data)
	if err == nil || !strings.Contains(err.Error(), "x-aaa.json") {
		t.Errorf("%v", err)
	}
	if len(known) != 1 || known[0].Name != "x-acme" || known[0].Revoked == nil {
		t.Errorf("%+v", known)
	}
}

// A file that cannot be read bars its executor, not the node, and is replaced by
// credentials that are issued anew.
func TestOutsiderDamaged(t *testing.T) {
	data := t.TempDir()
	if err := durable.MkdirAll(filepath.Join(data, "executors")); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"", "{", `{"name":"x-aaa","types":["x.aaa.echo"],"nkey":"none","issued":"2026-11-20T10:00:00Z"}`} {
		if err := os.WriteFile(filepath.Join(data, "executors", "x-aaa.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		n, err := Open(t.Context(), config(data))
		if err := errors.Join(err, n.Close()); err != nil {
			t.Fatalf("with %q for credentials: %v", text, err)
		}
	}
	if err := os.WriteFile(filepath.Join(data, "executors", "x-aaa.json"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := IssueOutsider(data, "x-aaa", []string{"x.aaa.echo"}, time.Now()); err != nil {
		t.Errorf("issued anew: %v", err)
	}
}
