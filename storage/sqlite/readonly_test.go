package sqlite_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/storage"
	"aob.dev/writ/storage/sqlite"
)

// TestOpenRecords: the journal can be read beside its writer and after it.
func TestOpenRecords(t *testing.T) {
	dir := t.TempDir()
	if _, err := sqlite.OpenRecords(t.Context(), dir); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("no journal: %v", err)
	}
	j, err := sqlite.OpenJournal(t.Context(), dir, sqlite.JournalOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var want []storage.Record
	for range 300 {
		rec := storage.NewRecord(storage.KindControl, time.Now(), map[string]json.RawMessage{storage.PartControl: json.RawMessage(`{}`)})
		res, err := j.Commit(t.Context(), storage.Commit{ID: string(rec.Salts[storage.PartControl]), Entries: []storage.Entry{{Record: rec, Target: storage.NoPosition}}})
		if err != nil || res.Verdict != storage.Won {
			t.Fatal(res, err)
		}
		rec.Position = res.Positions[0]
		want = append(want, rec)
	}
	for _, when := range []string{"beside the writer", "after it"} {
		r, err := sqlite.OpenRecords(t.Context(), dir)
		if err != nil {
			t.Fatal(when, err)
		}
		var got []storage.Record
		for rec, err := range r.Scan(t.Context(), 0) {
			if err != nil {
				t.Fatal(when, err)
			}
			got = append(got, rec)
		}
		if diff := cmp.Diff(want, got); diff != "" || r.Next() != 300 {
			t.Fatal(when, diff)
		}
		one, err := r.Get(t.Context(), 299)
		if err != nil || cmp.Diff(want[299], one) != "" {
			t.Fatal(when, err)
		}
		if _, err := r.Get(t.Context(), 300); !errors.Is(err, storage.ErrNotFound) {
			t.Fatal(when, err)
		}
		if err := r.Close(); err != nil {
			t.Fatal(when, err)
		}
		if err := j.Close(); err != nil {
			t.Fatal(when, err)
		}
	}
}

// TestScanInParts: one transaction reads some megabytes of records, and a scan continues where
// it has ended.
func TestScanInParts(t *testing.T) {
	dir := t.TempDir()
	j := open(t, dir, sqlite.JournalOptions{})
	const n = 40
	for i := range n {
		commitAll(t, j, fmt.Sprint(i), secretIntent("long", 1<<20))
	}
	if read, err := j.ReadOnce(t.Context(), 0); err != nil || read == 0 || read >= n/2 {
		t.Errorf("%d records of a megabyte were read at once: %v", read, err)
	}
	next := int64(0)
	for rec, err := range j.Scan(t.Context(), 0) {
		if err != nil || rec.Position != next {
			t.Fatal(rec.Position, next, err)
		}
		next++
	}
	if next != n || len(recordsOf(t, dir)) != n {
		t.Errorf("%d records", next)
	}
	closeJournal(t, j)
	j = open(t, dir, sqlite.JournalOptions{}) // it reads them all
	closeJournal(t, j)
}
