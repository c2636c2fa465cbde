package sqlite_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/sqlite"
)

// dispatched is an open order as a router records it.
func dispatched(name string) storage.Entry {
	k := storage.OrderKey("acme", "u", "test", name)
	decision, err := json.Marshal(intents.Decision{Verdict: intents.Allow, Code: intents.OK, IntentID: "sha256:" + name, Executor: "python", Key: k.String()})
	if err != nil {
		panic(err) // texts
	}
	rec := storage.NewRecord(storage.KindOrder, time.UnixMilli(1), map[string]json.RawMessage{storage.PartDecision: decision})
	return storage.Entry{Record: rec, Take: true, Key: k, Holder: storage.Nobody, Open: true, Of: storage.Nobody}
}

// overwritten replaces bytes of a closed journal's file, as who can write to it may.
func overwritten(t *testing.T, dir string, old, new []byte) {
	t.Helper()
	path := filepath.Join(dir, "journal.db")
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(raw, old); n != 1 {
		t.Fatalf("the bytes are there %d times", n)
	}
	if err := os.WriteFile(path, bytes.Replace(raw, old, new, 1), 0o600); err != nil {
		t.Fatal(err)
	}
}

func checkKeys(t *testing.T, dir string) error {
	t.Helper()
	r, err := sqlite.OpenRecords(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	_, err = r.CheckKeys(t.Context())
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	return err
}

// A key that somebody overwrote in the key log is found by who checks, and put
// right by who opens: the order is not taken again.
func TestKeyLogFlipped(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "journal")
	j := open(t, dir, sqlite.JournalOptions{})
	for _, name := range []string{"a", "b", "c"} {
		r, err := j.Commit(t.Context(), storage.Commit{ID: name, Entries: []storage.Entry{dispatched(name)}})
		if err != nil || r.Verdict != storage.Won {
			t.Fatal(r, err)
		}
	}
	closeJournal(t, j)
	if err := checkKeys(t, dir); err != nil {
		t.Fatal(err)
	}
	was := dispatched("b").Key
	overwritten(t, dir, was[:], bytes.Repeat([]byte{0xee}, len(was)))
	var damage *sqlite.DamageError
	if err := checkKeys(t, dir); !errors.As(err, &damage) || damage.Position != 1 {
		t.Fatalf("checked: %v", err)
	}
	var told []*sqlite.DamageError
	j = open(t, dir, sqlite.JournalOptions{OnDamage: func(d *sqlite.DamageError) { told = append(told, d) }})
	if len(told) != 1 || told[0].Position != 1 {
		t.Errorf("told %v", told)
	}
	r, err := j.Commit(t.Context(), storage.Commit{ID: "again", Entries: []storage.Entry{dispatched("b")}})
	if err != nil || r.Verdict != storage.Lost || r.Winner != 1 {
		t.Errorf("the order is taken again: %+v, %v", r, err)
	}
	closeJournal(t, j)
	if err := checkKeys(t, dir); err != nil {
		t.Errorf("after an opening: %v", err)
	}
}

// Nor are flags and references that stand beside the parts believed.
func TestFlagsFlipped(t *testing.T) {
	for name, c := range map[string]struct{ entry func() storage.Entry }{
		"open":   {func() storage.Entry { e := dispatched("a"); e.Open = false; return e }},
		"untook": {func() storage.Entry { e := dispatched("a"); e.Take, e.Open = false, true; return e }},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "journal")
			j := open(t, dir, sqlite.JournalOptions{})
			if r, err := j.Commit(t.Context(), storage.Commit{ID: "a", Entries: []storage.Entry{c.entry()}}); err != nil || r.Verdict != storage.Won {
				t.Fatal(r, err)
			}
			closeJournal(t, j)
			if err := checkKeys(t, dir); err == nil || !errors.As(err, new(*sqlite.DamageError)) {
				t.Errorf("checked: %v", err)
			}
			told := 0
			j = open(t, dir, sqlite.JournalOptions{OnDamage: func(*sqlite.DamageError) { told++ }})
			h, found, err := j.Lookup(t.Context(), dispatched("a").Key)
			if err != nil || !found || h.State != storage.StateOpen || told == 0 {
				t.Errorf("%+v %v %v, told %d times", h, found, err, told)
			}
			closeJournal(t, j)
		})
	}
}

// An outcome of another order than its part says ends that one, not the other.
func TestReferenceFlipped(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "journal")
	j := open(t, dir, sqlite.JournalOptions{})
	for _, name := range []string{"a", "b"} {
		if _, err := j.Commit(t.Context(), storage.Commit{ID: name, Entries: []storage.Entry{dispatched(name)}}); err != nil {
			t.Fatal(err)
		}
	}
	out := storage.NewRecord(storage.KindOutcome, time.UnixMilli(1), map[string]json.RawMessage{storage.PartOutcome: json.RawMessage(`{"of":0}`)})
	if _, err := j.Finish(t.Context(), 1, 1, out, nil); err != nil { // beside its part it says 1
		t.Fatal(err)
	}
	closeJournal(t, j)
	if err := checkKeys(t, dir); err == nil || !strings.Contains(err.Error(), "which order it is about") {
		t.Errorf("checked: %v", err)
	}
	j = open(t, dir, sqlite.JournalOptions{})
	list, err := j.OpenOrders(t.Context())
	if err != nil || fmt.Sprint(list) != "[{1 1}]" {
		t.Errorf("open are %v, %v", list, err)
	}
	closeJournal(t, j)
}
