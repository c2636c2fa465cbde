package sqlite_test

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"aob.dev/writ/storage"
	"aob.dev/writ/storage/sqlite"
)

// secretIntent has a word many times over, in a part of some kilobytes.
func secretIntent(word string, length int) storage.Entry {
	text := strings.Repeat(word+" ", 1+length/(len(word)+1))
	parts := map[string]json.RawMessage{"envelope": json.RawMessage(fmt.Sprintf("%q", text)), "decision": json.RawMessage(`{"kept":"` + word[:3] + `kept"}`)}
	return storage.Entry{Record: storage.NewRecord(storage.KindIntent, time.UnixMilli(0), parts), Holder: storage.NoPosition, Target: storage.NoPosition}
}

func commitAll(t *testing.T, j *sqlite.Journal, id string, entries ...storage.Entry) {
	t.Helper()
	if r, err := j.Commit(t.Context(), storage.Commit{ID: id, Entries: entries}); err != nil || r.Verdict != storage.Won {
		t.Fatalf("commit: %+v, %v", r, err)
	}
}

// inFiles returns the files of a directory that contain some bytes.
func inFiles(t *testing.T, dir, text string) (names []string) {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		raw, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(raw, []byte(text)) {
			names = append(names, f.Name())
		}
	}
	return names
}

// sound has SQLite look at every page.
func sound(t *testing.T, path string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	var said string
	if err := db.QueryRowContext(t.Context(), "PRAGMA integrity_check").Scan(&said); err != nil || said != "ok" {
		t.Errorf("integrity: %s, %v", said, err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestErasedBytes: after Erase no file of the journal has the bytes, whatever the
// part's size and its neighbours, while the journal is open and after.
func TestErasedBytes(t *testing.T) {
	dir := t.TempDir()
	j := open(t, dir, sqlite.JournalOptions{})
	const n = 60
	var what []storage.Erasure
	for i := range n {
		commitAll(t, j, fmt.Sprint(i), secretIntent(fmt.Sprintf("gone%02d", i), i*i*30), secretIntent(fmt.Sprintf("stay%02d", i), i*50))
		what = append(what, storage.Erasure{Position: int64(2 * i), Parts: []string{"envelope"}})
	}
	if len(inFiles(t, dir, "gone03")) == 0 {
		t.Fatal("the test looks in the wrong place")
	}
	for _, x := range what[:n/2] {
		if err := j.Erase(t.Context(), x); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Erase(t.Context(), what[n/2:]...); err != nil {
		t.Fatal(err)
	}
	check := func() {
		t.Helper()
		for i := range n {
			if where := inFiles(t, dir, fmt.Sprintf("gone%02d", i)); len(where) > 0 {
				t.Errorf("word %d is still in %v", i, where)
			}
			if where := inFiles(t, dir, fmt.Sprintf("stay%02d", i)); len(where) == 0 {
				t.Errorf("word %d of a record that was not named is gone", i)
			}
		}
	}
	check()
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	check()
	sound(t, filepath.Join(dir, "journal.db"))
	j = open(t, dir, sqlite.JournalOptions{})
	for _, x := range what {
		r, err := j.Get(t.Context(), x.Position)
		if err != nil || r.Parts["envelope"] != nil || r.Erased["envelope"] == "" || r.Parts["decision"] == nil {
			t.Errorf("record %d: %+v, %v", x.Position, r, err)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestEraseWaitsForReaders: as long as a reader has an older state of the
// journal the bytes are in its log, and Erase reports it; then it ends.
func TestEraseWaitsForReaders(t *testing.T) {
	dir := t.TempDir()
	j := open(t, dir, sqlite.JournalOptions{})
	defer func() {
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	}()
	commitAll(t, j, "1", secretIntent("gone", 2000), secretIntent("stay", 10))
	s, err := sqlite.CopyJournal(t.Context(), filepath.Join(dir, "journal.db"), filepath.Join(t.TempDir(), "copy.db"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	what := storage.Erasure{Position: 0, Parts: []string{"envelope"}}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := j.Erase(ctx, what); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("with a reader in the way: %v", err)
	}
	// It is erased for all later reads, and intents continue.
	if r, err := j.Get(t.Context(), 0); err != nil || r.Parts["envelope"] != nil {
		t.Fatalf("%+v, %v", r, err)
	}
	commitAll(t, j, "2", secretIntent("more", 10))
	ended := make(chan error, 1)
	go func() { ended <- j.Erase(t.Context(), what) }()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if where := inFiles(t, dir, "gone"); len(where) > 0 {
		t.Errorf("still in %v", where)
	}
}

// TestEraseUnsalted: without a salt the digest would reveal what was erased.
func TestEraseUnsalted(t *testing.T) {
	j := open(t, t.TempDir(), sqlite.JournalOptions{})
	e := secretIntent("gone", 10)
	delete(e.Record.Salts, "envelope")
	commitAll(t, j, "1", e)
	if err := j.Erase(t.Context(), storage.Erasure{Position: 0, Parts: []string{"envelope"}}); err == nil {
		t.Error("erased")
	}
	if r, err := j.Get(t.Context(), 0); err != nil || r.Parts["envelope"] == nil {
		t.Errorf("%+v, %v", r, err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
}
