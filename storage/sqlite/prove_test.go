package sqlite_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/sqlite"
)

// dispatched is an open intent as a router records it.
func dispatched(name string) storage.Entry {
	k := storage.NewIntentKeys(nil).Key("acme", "u", "test", name)
	decision, err := json.Marshal(intents.Decision{Verdict: intents.Allow, Code: intents.OK, IntentID: "sha256:" + name, Executor: "python", Key: k.String()})
	if err != nil {
		panic(err) // texts
	}
	rec := storage.NewRecord(storage.KindIntent, time.UnixMilli(1), map[string]json.RawMessage{storage.PartDecision: decision})
	return storage.Entry{Record: rec, Take: true, Key: k, Holder: storage.NoPosition, Open: true, Target: storage.NoPosition}
}

func checked(t *testing.T, dir string) error {
	t.Helper()
	r, err := sqlite.OpenRecords(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, err = range r.Entries(t.Context(), 0) {
		if err != nil {
			break
		}
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	return err
}

// TestKeyParts: the key of an intent is stored in its parts only. A key that they do
// not give is neither committed nor, in a changed file, opened.
func TestKeyParts(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "journal")
	j := open(t, dir, sqlite.JournalOptions{})
	mute, other := dispatched("x"), dispatched("x")
	mute.Record = storage.NewRecord(storage.KindIntent, time.UnixMilli(1), nil)
	other.Key = dispatched("y").Key
	for name, e := range map[string]storage.Entry{"none": mute, "another": other} {
		if r, err := j.Commit(t.Context(), storage.Commit{ID: name, Entries: []storage.Entry{e}}); err == nil || r.Verdict != storage.Unknown {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
	for _, name := range []string{"a", "b"} {
		if r, err := j.Commit(t.Context(), storage.Commit{ID: name, Entries: []storage.Entry{dispatched(name)}}); err != nil || r.Verdict != storage.Won {
			t.Fatal(r, err)
		}
	}
	closeJournal(t, j)
	j = open(t, dir, sqlite.JournalOptions{})
	if r, err := j.Commit(t.Context(), storage.Commit{ID: "again", Entries: []storage.Entry{dispatched("b")}}); err != nil || r.Verdict != storage.Lost || r.Winner != 1 {
		t.Errorf("the intent is taken again: %+v, %v", r, err)
	}
	closeJournal(t, j)
	// Of two keys that are as long, the first hex digit of b's becomes none.
	was := dispatched("b").Key.String()
	alter(t, dir, "UPDATE records SET body = CAST(replace(CAST(body AS TEXT), '"+was+"', 'g"+was[1:]+"') AS BLOB) WHERE position = 1")
	var damage *sqlite.DamageError
	if err := checked(t, dir); !errors.As(err, &damage) || damage.Position != 1 {
		t.Errorf("checked: %v", err)
	}
	if _, err := sqlite.OpenJournal(t.Context(), dir, sqlite.JournalOptions{}); !errors.As(err, &damage) || damage.Position != 1 {
		t.Errorf("opened: %v", err)
	}
}

// TestFlagsFlipped: flags and references beside the parts are not trusted either.
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
			if err := checked(t, dir); err == nil || !errors.As(err, new(*sqlite.DamageError)) {
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

// TestReferenceFlipped: an outcome ends the intent that its part names, not the one stored beside it.
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
	if err := checked(t, dir); err == nil || !strings.Contains(err.Error(), "which intent it is about") {
		t.Errorf("checked: %v", err)
	}
	j = open(t, dir, sqlite.JournalOptions{})
	list, err := j.OpenIntents(t.Context())
	if err != nil || fmt.Sprint(list) != "[{1 1}]" {
		t.Errorf("open are %v, %v", list, err)
	}
	closeJournal(t, j)
}
