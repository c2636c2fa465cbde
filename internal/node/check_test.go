package node

import (
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"aob.dev/writ/internal/durable"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
)

// exchange has another process put one text in the place of another in a record.
func exchange(t *testing.T, dir, old, new string) {
	t.Helper()
	execute(t, filepath.Join(dir, "journal", "journal.db"),
		"UPDATE records SET body = CAST(replace(CAST(body AS TEXT), '"+old+"', '"+new+"') AS BLOB) WHERE instr(CAST(body AS TEXT), '"+old+"')")
}

// logFinding is what a doctor says of a check.
func logFinding(t *testing.T, cfg Config, check string) Finding {
	t.Helper()
	list := examineLog(t.Context(), cfg)
	at := slices.IndexFunc(list, func(f Finding) bool { return f.Check == check })
	if at < 0 {
		t.Fatalf("no finding %s in %+v", check, list)
	}
	return list[at]
}

// Records that the directory rests on are held to their leaves at every start, and
// by the doctor, who finds what a start would.
func TestDirectoryRecordsAreChecked(t *testing.T) {
	cfg := config(t.TempDir())
	begun(t, cfg)
	before := contents(t, cfg.Dir)
	if f := logFinding(t, cfg, "log"); !f.OK {
		t.Fatalf("%+v", f)
	}
	if !unchanged(before, contents(t, cfg.Dir)) {
		t.Error("the doctor has written")
	}
	exchange(t, cfg.Dir, `\"may_assert_user\":true`, `\"may_assert_user\":TRUE`)
	if f := logFinding(t, cfg, "log"); f.OK {
		t.Errorf("the doctor finds nothing: %+v", f)
	}
	n, err := Open(t.Context(), cfg)
	if err = errors.Join(err, n.close()); err == nil {
		t.Errorf("it starts: %v %v", n.directory.Err(), n.directory.Rests())
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

// A changed record that still reads well is found by its leaf alone.
func TestSampleFindsChangedRecord(t *testing.T) {
	cfg := config(t.TempDir())
	begun(t, cfg)
	exchange(t, cfg.Dir, `"user_id\":\"local\"`, `"user_id\":\"loCal\"`)
	n, err := Open(t.Context(), cfg)
	if err = errors.Join(err, n.close()); err == nil || !strings.Contains(err.Error(), "not the commitment") {
		t.Errorf("opened: %v", err)
	}
	if f := logFinding(t, cfg, "log"); f.OK || !strings.Contains(f.Found, "not the commitment") {
		t.Errorf("%+v", f)
	}
}

// What is changed under a running node raises an alarm.
func TestBackgroundCheck(t *testing.T) {
	cfg := config(t.TempDir())
	n := open(t, cfg)
	run(t, n)
	if err := tenantPut(t.Context(), n, "acme"); err != nil {
		t.Fatal(err)
	}
	if _, err := n.ledger.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n.checkAll(t.Context()); n.health.Up(conditionAltered) {
		t.Fatalf("%+v", n.health.List())
	}
	exchange(t, cfg.Dir, `\"id\":\"acme\"`, `\"id\":\"aCme\"`)
	n.checkAll(t.Context())
	if code, status, up := readyz(t, n); code != http.StatusOK || status != "degraded" || len(up) != 1 || up[0].Name != conditionAltered {
		t.Errorf("%d %s %+v", code, status, up)
	}
}

// A state in memory that is not what the records make raises an alarm; what erasures
// and decisions change meanwhile does not.
func TestBackgroundCheckOfState(t *testing.T) {
	n := open(t, config(t.TempDir()))
	run(t, n)
	if err := tenantPut(t.Context(), n, "acme"); err != nil {
		t.Fatal(err)
	}
	if n.checkAll(t.Context()); n.health.Up(conditionAltered) {
		t.Fatalf("%+v", n.health.List())
	}
	body, err := json.Marshal(state.Control{Catalog: "sha256:another"})
	if err != nil {
		t.Fatal(err)
	}
	r := storage.NewRecord(storage.KindControl, time.Now(), map[string]json.RawMessage{storage.PartControl: body})
	r.Position = n.directory.Next() - 1 // no record of the journal
	n.directory.Observe(storage.Entry{Record: r, Of: storage.Nobody})
	if n.checkAll(t.Context()); !n.health.Up(conditionAltered) {
		t.Error("a state that no record made is not found")
	}
}

// The doctor finds a key log that was changed, parts that are gone and credentials
// that cannot be read.
func TestDoctorReadsTheLog(t *testing.T) {
	cfg := config(t.TempDir())
	begun(t, cfg)
	if err := errors.Join(durable.MkdirAll(filepath.Join(cfg.Dir, "executors")), os.WriteFile(filepath.Join(cfg.Dir, "executors", "x-aaa.json"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if f := logFinding(t, cfg, "executors"); f.OK || !strings.Contains(f.Found, "x-aaa") {
		t.Errorf("%+v", f)
	}
	execute(t, filepath.Join(cfg.Dir, "journal", "journal.db"), "UPDATE keylog SET keys = CAST(substr(keys, 1, 1) || zeroblob(16) AS BLOB) WHERE length(keys) = 17 AND first > 0")
	if f := logFinding(t, cfg, "log"); f.OK || !strings.Contains(f.Found, "key log") {
		t.Errorf("%+v", f)
	}
	if err := os.Remove(tagFile(cfg.Dir)); err != nil {
		t.Fatal(err)
	}
	if f := logFinding(t, cfg, "log"); f.OK || !strings.Contains(f.Found, "tags") {
		t.Errorf("%+v", f)
	}
	if f := logFinding(t, config(t.TempDir()), "log"); !f.OK {
		t.Errorf("a directory that is still to be made: %+v", f)
	}
}

// The sample has the newest record and all that the directory rests on.
func TestSample(t *testing.T) {
	at := sampleOf([]int64{0, 3, 5}, 1000)
	for _, want := range []int64{0, 3, 5, 999} {
		if !slices.Contains(at, want) {
			t.Errorf("%d is not looked at", want)
		}
	}
	if len(at) < sampled/2 || at[0] != 0 || slices.Max(at) >= 1000 || storage.Nobody == at[0] {
		t.Errorf("%v", at)
	}
}
