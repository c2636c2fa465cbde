package sqlite_test

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"aob.dev/writ/internal/testing/storagetest"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/sqlite"
)

func commitOne(t *testing.T, j *sqlite.Journal, id string) int64 {
	t.Helper()
	r, err := j.Commit(t.Context(), storagetest.CrashCommit(id, 1))
	if err != nil || r.Verdict != storage.Won {
		t.Fatalf("commit %s = %+v, %v", id, r, err)
	}
	return r.Positions[0]
}

func closeJournal(t *testing.T, j *sqlite.Journal) {
	t.Helper()
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestFullDisk: below the floor no intent is accepted, everything else continues.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	j := open(t, dir, sqlite.JournalOptions{})
	commitOne(t, j, "before")
	closeJournal(t, j)

	j = open(t, dir, sqlite.JournalOptions{FreeFloor: math.MaxInt64})
	if r, err := j.Commit(t.Context(), storagetest.CrashCommit("new", 1)); !errors.Is(err, storage.ErrFull) || r.Verdict != storage.Unknown {
		t.Fatalf("commit = %+v, %v", r, err)
	}
	if r, err := j.Commit(t.Context(), storagetest.CrashCommit("before", 1)); err != nil || r.Verdict != storage.Won {
		t.Fatalf("own commit = %+v, %v", r, err)
	}
	duplicate := storagetest.CrashCommit("before", 1)
	duplicate.ID = "duplicate"
	if r, err := j.Commit(t.Context(), duplicate); err != nil || r.Verdict != storage.Lost {
		t.Fatalf("duplicate = %+v, %v", r, err)
	}
	refusal := storagetest.CrashCommit("refusal", 1)
	refusal.Entries[0].Take, refusal.Entries[0].Open = false, false
	if r, err := j.Commit(t.Context(), refusal); err != nil || r.Verdict != storage.Won {
		t.Fatalf("refusal = %+v, %v", r, err)
	}
	if attempt, err := j.Take(t.Context(), 0, storagetest.CrashRecord(storage.KindTakeover, "t", 0, 1)); err != nil || attempt != 2 {
		t.Fatalf("take = %d, %v", attempt, err)
	}
	if _, err := j.Finish(t.Context(), 0, 2, storagetest.CrashRecord(storage.KindOutcome, "o", 0, 1), nil); err != nil {
		t.Fatal(err)
	}
	closeJournal(t, j)
}

// TestDiskFillsUp fills the disk inside a transaction: the caller is
// notified, nothing of the commit remains, and with room again the journal continues.
func TestDiskFillsUp(t *testing.T) {
	dir := t.TempDir()
	j := open(t, dir, sqlite.JournalOptions{})
	commitOne(t, j, "before")
	j.LimitPages(t, 2)
	large := storagetest.CrashCommit("large", 3)
	for i := range large.Entries {
		large.Entries[i].Record.Parts["pad"] = json.RawMessage(fmt.Sprintf("%q", strings.Repeat("x", 20_000)))
	}
	if r, err := j.Commit(t.Context(), large); !errors.Is(err, storage.ErrFull) || r.Verdict != storage.Unknown {
		t.Fatalf("commit = %+v, %v", r, err)
	}
	if _, found, err := j.Lookup(t.Context(), storagetest.CrashKey("large")); found || err != nil {
		t.Fatalf("lookup = %v, %v", found, err)
	}
	if p := commitOne(t, j, "small"); p != 1 {
		t.Fatalf("the next commit is at %d", p)
	}
	j.LimitPages(t, 1000)
	if r, err := j.Commit(t.Context(), large); err != nil || r.Verdict != storage.Won || r.Positions[0] != 2 {
		t.Fatalf("asked again = %+v, %v", r, err)
	}
	closeJournal(t, j)
	j = open(t, dir, sqlite.JournalOptions{})
	if n := j.Next(); n != 5 {
		t.Fatalf("Next is %d", n)
	}
	closeJournal(t, j)
}

// TestFailedWrite breaks the table under the writer: the group that meets it
// leaves nothing, in memory or on disk, and the journal stops working.
func TestFailedWrite(t *testing.T) {
	dir := t.TempDir()
	var fatal []error
	j := open(t, dir, sqlite.JournalOptions{OnFatal: func(err error) { fatal = append(fatal, err) }})
	commitOne(t, j, "before")
	alter(t, dir, `CREATE TRIGGER broken BEFORE INSERT ON records WHEN NEW.position = 2
		BEGIN SELECT RAISE(ABORT, 'no more'); END`)
	if r, err := j.Commit(t.Context(), storagetest.CrashCommit("two", 2)); err == nil || r.Verdict != storage.Unknown {
		t.Fatalf("commit = %+v, %v", r, err)
	}
	if n := j.Next(); n != 1 {
		t.Fatalf("Next is %d", n)
	}
	if len(fatal) != 1 {
		t.Fatalf("OnFatal was called %d times", len(fatal))
	}
	for name, err := range map[string]error{
		"commit": func() error { _, err := j.Commit(t.Context(), storagetest.CrashCommit("x", 1)); return err }(),
		"finish": func() error {
			_, err := j.Finish(t.Context(), 0, 1, storagetest.CrashRecord(storage.KindOutcome, "o", 0, 1), nil)
			return err
		}(),
		"take": func() error {
			_, err := j.Take(t.Context(), 0, storagetest.CrashRecord(storage.KindTakeover, "o", 0, 1))
			return err
		}(),
		"lookup": func() error { _, _, err := j.Lookup(t.Context(), storagetest.CrashKey("before")); return err }(),
		"holder": func() error { _, err := j.Holder(t.Context(), 0); return err }(),
		"get":    func() error { _, err := j.Get(t.Context(), 0); return err }(),
		"open":   func() error { _, err := j.OpenIntents(t.Context()); return err }(),
	} {
		if err == nil {
			t.Errorf("%s succeeded after a failed write", name)
		}
	}
	if len(fatal) != 1 {
		t.Fatalf("OnFatal was called %d times", len(fatal))
	}
	closeJournal(t, j)
	alter(t, dir, "DROP TRIGGER broken")
	j = open(t, dir, sqlite.JournalOptions{})
	if p := commitOne(t, j, "two"); p != 1 {
		t.Fatalf("the first free position is %d", p)
	}
	closeJournal(t, j)
}

// TestDamagedJournal: what cannot be the work of this program is not opened.
func TestDamagedJournal(t *testing.T) {
	for name, damage := range map[string]struct{ sql, says string }{
		"gap":           {"DELETE FROM records WHERE position = 1", "gap"},
		"first missing": {"DELETE FROM records WHERE position = 0", "gap"},
		"last missing":  {"DELETE FROM records WHERE position = 2", "the last one is missing"},
		"other commits": {"UPDATE commits SET ids = x'00' WHERE first = 1", "malformed"},
		"no commits":    {"DROP TABLE commits", "earlier writ"},
		"body":          {"UPDATE records SET body = substr(body, 1, 20) WHERE position = 1", "malformed"},
		"longer body":   {"UPDATE records SET body = CAST(body || x'00' AS BLOB) WHERE position = 1", "malformed"},
		"body version":  {"UPDATE records SET body = x'0900' WHERE position = 1", "version 9"},
		"kind":          {"UPDATE records SET kind = 77 WHERE position = 1", "kind 77"},
		"newer schema":  {"PRAGMA user_version = 9", "newer"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			j := open(t, dir, sqlite.JournalOptions{})
			for _, id := range []string{"a", "b", "c"} {
				commitOne(t, j, id)
			}
			closeJournal(t, j)
			alter(t, dir, damage.sql)
			j, err := sqlite.OpenJournal(t.Context(), dir, sqlite.JournalOptions{})
			if err == nil {
				closeJournal(t, j)
				t.Fatal("a damaged journal was opened")
			}
			if !strings.Contains(err.Error(), damage.says) {
				t.Fatalf("%v; want it to say %q", err, damage.says)
			}
		})
	}
}

// alter runs SQL on the journal's file as another program would.
func alter(t *testing.T, dir, text string) {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(dir, "journal.db"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(t.Context(), text); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestFullDiskAtCheckpoint: a disk that is full while the write-ahead log is copied leaves nothing in doubt:
// the log has it all, and the copy is made when there is room.
func TestFullDiskAtCheckpoint(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "journal")
	disk := newTap(t, dir)
	var fatal atomic.Int32
	j := open(t, dir, sqlite.JournalOptions{OnFatal: func(error) { fatal.Add(1) }})
	full := func(is bool) {
		disk.mu.Lock()
		defer disk.mu.Unlock()
		disk.full = nil
		if is {
			disk.full = func(file string) bool { return file == "journal.db" }
		}
	}
	stuck := func(want bool) {
		t.Helper()
		for n := 0; ; n++ {
			r, err := j.Room()
			if err != nil || n > 1000 {
				t.Fatalf("%+v, %v", r, err)
			}
			if r.Stuck == want {
				return
			}
			<-time.After(10 * time.Millisecond)
		}
	}
	commitOne(t, j, "before")
	full(true)
	commitOne(t, j, "while")
	stuck(true)
	j.RestartLog()
	commitOne(t, j, "restarted")
	full(false)
	commitOne(t, j, "after")
	stuck(false)
	if fatal.Load() != 0 {
		t.Error("the process is to end")
	}
	closeJournal(t, j)
	j = open(t, dir, sqlite.JournalOptions{})
	if j.Next() != 4 {
		t.Errorf("%d records", j.Next())
	}
	closeJournal(t, j)
}

// TestFull: outcomes and commits that find no room are written when there is some, once.
func TestFull(t *testing.T) {
	dir := t.TempDir()
	j := open(t, dir, sqlite.JournalOptions{})
	storagetest.Full(t, j, func(is bool) {
		j.LimitPages(t, map[bool]int{true: 1, false: 10_000}[is])
	})
	n := j.Next()
	closeJournal(t, j)
	j = open(t, dir, sqlite.JournalOptions{})
	if j.Next() != n {
		t.Errorf("%d records, not %d", j.Next(), n)
	}
	closeJournal(t, j)
}
