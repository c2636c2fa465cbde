package node

import (
	"database/sql"
	"encoding/json"
	"errors"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"aob.dev/writ/state"
	"aob.dev/writ/storage"
)

// exchange has another process put one text in the place of another in a record.
func exchange(t *testing.T, dir, old, new string) {
	t.Helper()
	execute(t, filepath.Join(dir, "journal", "journal.db"),
		"UPDATE records SET body = CAST(replace(CAST(body AS TEXT), '"+old+"', '"+new+"') AS BLOB) WHERE instr(CAST(body AS TEXT), '"+old+"')")
}

// Records that the directory rests on are held to their leaves at every start.
func TestDirectoryRecordsAreChecked(t *testing.T) {
	cfg := config(t.TempDir())
	begun(t, cfg)
	exchange(t, cfg.Dir, `\"may_assert_user\":true`, `\"may_assert_user\":TRUE`)
	n, err := Open(t.Context(), cfg)
	if err = errors.Join(err, n.close()); err == nil {
		t.Errorf("it starts: %v %v", n.directory.Err(), n.directory.Rests())
	}
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
	n.directory.Observe(storage.Entry{Record: r, Target: storage.NoPosition})
	if n.checkAll(t.Context()); !n.health.Up(conditionAltered) {
		t.Error("a state that no record made is not found")
	}
}

// execute changes a database as its own process never would.
func execute(t *testing.T, path, statement string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	res, err := db.ExecContext(t.Context(), statement)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := res.RowsAffected(); err != nil || n == 0 {
		t.Fatal("nothing was changed", err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}
