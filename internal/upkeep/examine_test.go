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
)

// exchange has another process put one text in the place of another in a record.
func exchange(t *testing.T, dir, old, new string) {
	t.Helper()
	execute(t, filepath.Join(dir, "journal", "journal.db"),
		"UPDATE records SET body = CAST(replace(CAST(body AS TEXT), '"+old+"', '"+new+"') AS BLOB) WHERE instr(CAST(body AS TEXT), '"+old+"')")
}

// examined by a doctor is a directory.
func examined(dir string) Examination { return Examination{Dir: dir, Now: time.Now} }

// The doctor finds what a start would: records that the directory rests on, and
// others, that are not what their leaves say.
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

// The doctor finds a key log that was changed, parts that are gone and credentials
// that cannot be read.
func TestDoctorReadsTheLog(t *testing.T) {
	dir := t.TempDir()
	once(t, config(dir), published)
	if err := errors.Join(durable.MkdirAll(filepath.Join(dir, "executors")), os.WriteFile(filepath.Join(dir, "executors", "x-aaa.json"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if f := examined(dir).executors(); f.Level != Warn || !strings.Contains(f.Found, "x-aaa") {
		t.Errorf("%+v", f)
	}
	execute(t, filepath.Join(dir, "journal", "journal.db"), "UPDATE keylog SET keys = CAST(substr(keys, 1, 1) || zeroblob(16) AS BLOB) WHERE length(keys) = 17 AND first > 0")
	if f := examined(dir).log(t.Context()); f.Level != Fail || !strings.Contains(f.Found, "key log") {
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
