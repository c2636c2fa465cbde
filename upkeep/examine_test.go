package upkeep

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/internal/durable"
	"aob.dev/writ/internal/testing/egresstest"
)

// exchange has another process replace one text by another in a record.
func exchange(t *testing.T, dir, old, new string) {
	t.Helper()
	execute(t, filepath.Join(dir, "journal", "journal.db"),
		"UPDATE records SET body = CAST(replace(CAST(body AS TEXT), '"+old+"', '"+new+"') AS BLOB) WHERE instr(CAST(body AS TEXT), '"+old+"')")
}

// examined is the doctor's examination of a directory.
func examined(dir string) Examination { return Examination{Dir: dir, Now: time.Now} }

// The doctor finds what a start would: records that the directory depends on, and others, that do
// not match their leaves.
func TestDoctorFindsChangedRecords(t *testing.T) {
	for old, new := range map[string]string{
		`\"may_assert_user\":true`: `\"may_assert_user\":TRUE`, `"user_id\":\"local\"`: `"user_id\":\"loCal\"`,
	} {
		dir := t.TempDir()
		once(t, config(dir), published)
		before := contents(t, dir)
		if f := examined(dir).log(t.Context()); f.Level != OK {
			t.Fatalf("%+v", f)
		}
		if !unchanged(before, contents(t, dir)) {
			t.Error("the doctor has written")
		}
		exchange(t, dir, old, new)
		if f := examined(dir).log(t.Context()); f.Level != Fail {
			t.Errorf("the doctor finds nothing: %+v", f)
		}
	}
}

func unchanged(a, b map[string][32]byte) bool {
	for name, sum := range a {
		if b[name] != sum && !strings.HasSuffix(name, "-shm") {
			return false
		}
	}
	return true
}

// The doctor finds changed flags, missing parts and unreadable credentials.
func TestDoctorReadsTheLog(t *testing.T) {
	dir := t.TempDir()
	once(t, config(dir), published)
	if err := errors.Join(durable.MkdirAll(filepath.Join(dir, "executors")), os.WriteFile(filepath.Join(dir, "executors", "x-aaa.json"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if f := examined(dir).executors(); f.Level != Warn || !strings.Contains(f.Found, "x-aaa") {
		t.Errorf("%+v", f)
	}
	execute(t, filepath.Join(dir, "journal", "journal.db"), "UPDATE records SET body = CAST(substr(body, 1, 1) || x'00' || substr(body, 3) AS BLOB) WHERE position = 1")
	if f := examined(dir).log(t.Context()); f.Level != Fail || !strings.Contains(f.Found, "takes a key") {
		t.Errorf("%+v", f)
	}
	if err := os.Remove(datadir.Tags(dir)); err != nil {
		t.Fatal(err)
	}
	if f := examined(dir).log(t.Context()); f.Level != Fail || !strings.Contains(f.Found, "tags") {
		t.Errorf("%+v", f)
	}
	if f := examined(t.TempDir()).log(t.Context()); f.Level != OK {
		t.Errorf("a directory that is still to be made: %+v", f)
	}
}

// TestDoctorAsksTheServersOfStores: the doctor asks the servers of documents and blobs, and
// explains their answers, with the setting that helps.
func TestDoctorAsksTheServersOfStores(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "writ")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "confidential")
	broken := egresstest.Servers(t)
	for name, want := range map[string]Level{"refuses": Warn, "Unauthorized": Fail} {
		b := broken[name]
		e := examined(t.TempDir())
		e.Documents = datadir.DocumentsAt{URL: b.URL}
		f := e.documents(t.Context())
		b.Check(t, errors.New(f.Found), "no record is lost")
		if f.Level != want {
			t.Errorf("%s: %+v", name, f)
		}
	}
	b := broken["Unauthorized"]
	e := examined(t.TempDir())
	e.Blobs = datadir.BlobsAt{URL: "s3://acme/writ?endpoint=" + b.URL}
	f := e.blobs(t.Context())
	b.Check(t, errors.New(f.Found), "blobs that are kept there stay")
	if f.Level != Fail || f.Do != "" {
		t.Errorf("%+v", f)
	}
}
