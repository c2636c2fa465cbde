package sqlite_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/sqlite"
)

// TestIndex: a journal that is opened with an index of any of its positions equals one that
// reads all its records, a written index is read again, and commits are known as before.
func TestIndex(t *testing.T) {
	dir := t.TempDir()
	j := open(t, dir, sqlite.JournalOptions{})
	rng := rand.New(rand.NewPCG(1, 2))
	now := time.UnixMilli(1_790_000_000_000)
	var last storage.Commit
	for i := range 400 {
		now = now.Add(time.Duration(rng.IntN(60)) * time.Minute)
		if waiting, err := j.OpenIntents(t.Context()); err == nil && len(waiting) > 0 && rng.IntN(3) > 0 {
			of := waiting[rng.IntN(len(waiting))]
			status := []intents.Status{intents.Done, intents.Failed, intents.StatusIndetermined}[rng.IntN(3)]
			out := outcome(t, of.Position, status, now)
			if rng.IntN(5) == 0 {
				out.Kind, out.Parts = storage.KindTakeover, map[string]json.RawMessage{storage.PartTakeover: fmt.Appendf(nil, `{"of":%d}`, of.Position)}
				_, err = j.Take(t.Context(), of.Position, out)
			} else {
				_, err = j.Finish(t.Context(), of.Position, of.Attempt, out, []storage.Subject{"ended"})
			}
			if err != nil {
				t.Fatal(err)
			}
			continue
		}
		e := dispatched(fmt.Sprint(i))
		e.Record.At, e.Writes = now, []storage.Subject{storage.Subject(fmt.Sprint("s", rng.IntN(30))), "all"}
		last = storage.Commit{ID: fmt.Sprint("c", i), Entries: []storage.Entry{e}}
		if r, err := j.Commit(t.Context(), last); err != nil || r.Verdict != storage.Won {
			t.Fatal(r, err)
		}
	}
	want := written(t, j.Index())
	next := j.Next()
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}

	seen := int64(0)
	for range 40 {
		from := rng.Int64N(next + 1)
		j := open(t, dir, sqlite.JournalOptions{From: indexAt(t, dir, from), Observer: func(e storage.Entry) {
			if seen++; e.Record.Position < from {
				t.Errorf("record %d is shown, and the journal was opened from %d", e.Record.Position, from)
			}
		}})
		if got := written(t, j.Index()); !bytes.Equal(got, want) {
			t.Errorf("opened from %d the journal is another one", from)
		}
		r, err := j.Commit(t.Context(), last)
		if err != nil || r.Verdict != storage.Won || j.Next() != next {
			t.Errorf("opened from %d: its own commit is not known: %v, %v", from, r, err)
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if seen == 0 {
		t.Error("no record was shown")
	}
}

// TestIndexAhead: an index of a journal that has lost records since is refused.
func TestIndexAhead(t *testing.T) {
	dir, shorter := t.TempDir(), t.TempDir()
	for i, d := range []string{dir, dir, shorter} {
		j := open(t, d, sqlite.JournalOptions{})
		if r, err := j.Commit(t.Context(), storage.Commit{ID: fmt.Sprint(i), Entries: []storage.Entry{dispatched(fmt.Sprint(i))}}); err != nil || r.Verdict != storage.Won {
			t.Fatal(r, err)
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := sqlite.OpenJournal(t.Context(), shorter, sqlite.JournalOptions{From: indexAt(t, dir, 2)}); err == nil {
		t.Error("opened")
	}
}

// indexAt is the index of the records before a position, once written and read.
func indexAt(t *testing.T, dir string, next int64) *sqlite.Index {
	t.Helper()
	r, err := sqlite.OpenRecords(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	x := sqlite.NewIndex()
	for e, err := range r.Entries(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Record.Position < next {
			x.Observe(e)
		}
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	raw := written(t, x)
	read, err := sqlite.ReadIndex(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(written(t, read), raw) || read.Next() != next {
		t.Fatalf("an index of %d records is another one once it was written and read", next)
	}
	return read
}

func written(t *testing.T, x *sqlite.Index) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := x.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func outcome(t *testing.T, of int64, s intents.Status, at time.Time) storage.Record {
	t.Helper()
	body, err := json.Marshal(intents.Outcome{Target: of, Attempt: 1, Status: s})
	if err != nil {
		t.Fatal(err)
	}
	return storage.NewRecord(storage.KindOutcome, at, map[string]json.RawMessage{storage.PartOutcome: body})
}

// FuzzReadIndex: whatever is no index is refused.
func FuzzReadIndex(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{4, 0, 0, 0, 1, 1})
	f.Fuzz(func(t *testing.T, raw []byte) {
		if x, err := sqlite.ReadIndex(bytes.NewReader(raw)); err == nil {
			written(t, x)
		}
	})
}
