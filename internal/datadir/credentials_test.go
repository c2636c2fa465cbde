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

// The name of a reader of events has its tenant, up to the last underscore.
func TestEventReaderNames(t *testing.T) {
	data := t.TempDir()
	for name, ok := range map[string]bool{"acme_crm": true, "other.org_crm-2": true, "a_b_crm": true, "crm": false, "_crm": false, "acme_": false, "acme_CRM": false, "../x_crm": false, "acme/x_crm": false, "acme_cr m": false} {
		if _, err := EventReaders.Admit(data, name, nil, time.Now()); (err == nil) != ok || EventReaders.Valid(name) != ok {
			t.Errorf("%s: %v", name, err)
		}
	}
	if list, err := EventReaders.List(data); err != nil || len(list) != 3 {
		t.Errorf("%+v %v", list, err)
	}
	if list, err := Executors.List(data); err != nil || len(list) != 0 {
		t.Errorf("executors: %+v %v", list, err)
	}
}
