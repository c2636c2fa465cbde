package storagetest

import (
	"encoding/json"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/storage"
)

// testOldLeaves: an intent that ended KeptFor ago leaves, by the clock of the records: its key is
// free, its end is found in the records, and its subjects are as if never written. Open intents
// stay, and those with an unknown outcome. It makes no difference whether the journal was closed in
// between.
func testOldLeaves(h *harness) {
	h.wins(decided("done", intents.Allow, "s"))
	h.wins(decided("unknown", intents.Allow))
	h.wins(decided("open", intents.Allow))
	h.wins(decided("held", intents.Hold))
	h.wins(decided("refused", intents.Deny))
	h.ends(0, intents.Done)
	h.ends(1, intents.StatusIndetermined)
	h.wins(timedAfter(refusal("later"), storage.KeptFor-time.Minute))
	h.keyHolds("done", done(0, 5))
	h.wins(timedAfter(refusal("much later", "t"), 2*storage.KeptFor))
	for range 2 {
		h.keyIsFree("done")
		h.keyIsFree("refused")
		h.holds(0, done(0, 5))
		h.holds(4, waiting(4, storage.StateHeld))
		h.keyHolds("unknown", done(1, 6))
		h.keyHolds("open", waiting(2, storage.StateOpen))
		h.keyHolds("held", waiting(3, storage.StateHeld))
		h.finishFails(storage.ErrFinished, 0, 1)
		h.waits(map[int64]int{2: 1})
		h.reopen()
	}
	commit := storage.Commit{ID: "relies", AsOf: 1, Asserts: []storage.Assert{{Subject: "s", At: 0}}, Entries: []storage.Entry{timedAfter(decided("done", intents.Allow), 2*storage.KeptFor)}}
	h.verdict(storage.Stale, commit)
	commit.Asserts[0].At = storage.NoPosition
	h.verdict(storage.Stale, commit) // its reads are older than the journal's memory
	commit.AsOf = h.Next()
	h.same(h.verdict(storage.Won, commit).Positions, []int64{9})

	// An old open intent leaves like any other, once its end is old.
	h.ends(2, intents.Done)
	h.keyHolds("open", done(2, 10))
	h.wins(timedAfter(refusal("last"), 4*storage.KeptFor))
	h.keyIsFree("open")
	h.holds(2, done(2, 10))
}

// decided is an intent with the parts that a router writes.
func decided(name string, v intents.Verdict, writes ...storage.Subject) storage.Entry {
	d := intents.Decision{IntentID: name, Verdict: v, Executor: "skills", Key: key(name).String()}
	e := storage.Entry{Take: true, Key: key(name), Holder: storage.NoPosition, Open: v == intents.Allow, Refused: v == intents.Deny, Target: storage.NoPosition, Writes: writes}
	if e.Refused {
		e.Key = storage.RefusalKey(name, "")
	}
	e.Record = parts(storage.KindIntent, storage.PartDecision, d)
	return e
}

// ends an open intent; the record is timed like the one before.
func (h *harness) ends(of int64, s intents.Status) {
	h.Helper()
	if _, err := h.Finish(h.Context(), of, 1, parts(storage.KindOutcome, storage.PartOutcome, intents.Outcome{Target: of, Attempt: 1, Status: s}), nil); err != nil {
		h.Fatalf("end %d: %v", of, err)
	}
}

func parts(kind storage.Kind, name string, v any) storage.Record {
	body, err := json.Marshal(v)
	if err != nil {
		panic(err) // decisions and outcomes marshal
	}
	return storage.NewRecord(kind, epoch, map[string]json.RawMessage{name: body})
}

func timedAfter(e storage.Entry, later time.Duration) storage.Entry {
	e.Record.At = epoch.Add(later)
	return e
}

func (h *harness) keyIsFree(name string) {
	h.Helper()
	for what, k := range map[string]storage.Key{"intent": key(name), "refusal": storage.RefusalKey(name, "")} {
		if got, found, err := h.Lookup(h.Context(), k); err != nil || found {
			h.Fatalf("the key of the %s %s: %v, %v", what, name, got, err)
		}
	}
}
