package storagetest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"aob.dev/writ/intents"
	"aob.dev/writ/storage"
)

// erasable is an intent whose envelope begins with "word", and is of any length.
func erasable(length int) storage.Record {
	body := append([]byte(`"word`), bytes.Repeat([]byte("x"), length)...)
	return storage.NewRecord(storage.KindIntent, epoch, map[string]json.RawMessage{
		storage.PartEnvelope: append(body, '"'), storage.PartGrant: json.RawMessage(`"grant"`), storage.PartSummary: json.RawMessage(`{}`), storage.PartInputs: json.RawMessage(`{}`),
	})
}

// testErase: all erasable parts of an erased record are their digests, the record's digest
// stays, and nothing else of the journal changes. Without an Eraser there is nothing to test.
func testErase(h *harness) {
	eraser, ok := h.opened.(storage.Eraser)
	if !ok {
		return
	}
	// Of every size: within a page, of several, and so small that a digest is longer.
	var before []storage.Record
	for i, length := range []int{0, 10, 3_000, 20_000, 200_000} {
		e := openIntent(fmt.Sprint(i))
		e.Record = Telling(erasable(length), e.Key, intents.Allow)
		e.Writes = []storage.Subject{"plan/acme/p"}
		position := h.wins(e)
		r := h.get(position)
		before = append(before, r)
	}
	check := func(erased ...int64) {
		h.Helper()
		for _, was := range before {
			want := was
			if slices.Contains(erased, was.Position) {
				want, _ = was.Without(was.Erasable()...)
			}
			got := h.get(was.Position)
			h.same(got, want)
			if got.Digest() != was.Digest() {
				h.Fatalf("record %d has another digest", was.Position)
			}
			h.holds(was.Position, waiting(was.Position, storage.StateOpen))
		}
	}
	erase := func(positions ...int64) {
		h.Helper()
		if err := eraser.Erase(h.Context(), positions...); err != nil {
			h.Fatalf("erase %v: %v", positions, err)
		}
	}
	erase()
	check()
	erase(1)
	check(1)
	gone := []int64{4, 1, 0, 4}
	erase(gone...)
	erase(gone...)
	check(gone...)
	for _, p := range []int64{storage.NoPosition, h.Next()} {
		if err := eraser.Erase(h.Context(), p); !errors.Is(err, storage.ErrNotFound) {
			h.Fatalf("erase of %d: %v", p, err)
		}
	}
	// An outcome loses all that was written but its code. Later records rest on others: they stay.
	out := map[string]json.RawMessage{storage.PartOutcome: json.RawMessage(`{"of":2}`)}
	for _, name := range storage.ErasableParts[storage.KindOutcome] {
		out[name] = json.RawMessage(`"text"`)
	}
	outcome, err := h.Finish(h.Context(), 2, 1, storage.NewRecord(storage.KindOutcome, epoch, out), nil)
	if err != nil {
		h.Fatal(err)
	}
	held := heldIntent("held")
	held.Record = Telling(erasable(10), held.Key, intents.Hold)
	administrative := openIntent("administrative") // has no summary
	gone = append(gone, outcome, h.wins(held), h.wins(administrative))
	erase(gone...)
	seen := h.observed()
	stored := func() {
		h.Helper()
		for i, e := range seen {
			if slices.Contains(gone, int64(i)) {
				e.Record, _ = e.Record.Without(e.Record.Erasable()...)
			}
			h.same(h.get(int64(i)), e.Record)
		}
	}
	stored()
	if r := h.get(outcome); len(r.Parts) != 1 || len(r.Erased) != 4 || h.get(outcome+1).Erased != nil || h.get(outcome+2).Erased != nil {
		h.Fatalf("the outcome has %v, and lost %v", r.Parts, r.Erased)
	}
	h.reopen()
	stored()
	for i, e := range h.observed() {
		if slices.Contains(gone, int64(i)) {
			seen[i].Record, _ = seen[i].Record.Without(seen[i].Record.Erasable()...)
		}
		h.same(e, seen[i])
	}
	h.wins(openIntent("after"))
}

// testEraseTransient: the part transient goes alone, of an intent that is held too, and stays when all
// else that is erasable goes.
func testEraseTransient(h *harness) {
	eraser, ok := h.opened.(storage.Eraser)
	if !ok {
		return
	}
	var want []storage.Record
	for i, e := range []storage.Entry{openIntent("open"), heldIntent("held"), openIntent("other"), openIntent("without")} {
		r := erasable(100)
		if i < 3 {
			r.Parts[storage.PartTransient] = json.RawMessage(`{"name":{}}`)
			r = storage.NewRecord(r.Kind, r.At, r.Parts)
		}
		v := intents.Allow
		if i == 1 {
			v = intents.Hold
		}
		e.Record = Telling(r, e.Key, v)
		want = append(want, h.get(h.wins(e)))
	}
	check := func() {
		h.Helper()
		for _, r := range want {
			got := h.get(r.Position)
			h.same(got, r)
		}
	}
	check()
	without := func(i int, parts ...string) { want[i], _ = want[i].Without(parts...) }
	for range 2 {
		if err := eraser.EraseTransient(h.Context(), want[0].Position, want[1].Position, want[3].Position); err != nil {
			h.Fatal(err)
		}
		without(0, storage.PartTransient)
		without(1, storage.PartTransient)
		check()
	}
	if err := eraser.Erase(h.Context(), want[0].Position, want[2].Position); err != nil {
		h.Fatal(err)
	}
	without(0, want[0].Erasable()...)
	without(2, want[2].Erasable()...)
	check()
	if err := eraser.EraseTransient(h.Context(), h.Next()); !errors.Is(err, storage.ErrNotFound) {
		h.Fatalf("of no record: %v", err)
	}
	h.reopen()
	check()
}

// testEraseBesideWriters: commits go on while parts are erased, and each caller
// finds its own done.
func testEraseBesideWriters(h *harness) {
	eraser, ok := h.opened.(storage.Eraser)
	if !ok {
		return
	}
	const writers, each = 8, 10
	var running sync.WaitGroup
	var mu sync.Mutex // guards erased
	erased := map[int64]bool{}
	for w := range writers {
		running.Go(func() {
			for n := range each {
				e := openIntent(fmt.Sprint(w, n))
				e.Record = Telling(erasable(500*w), e.Key, intents.Allow)
				r, err := h.commit(e)
				if err != nil || r.Verdict != storage.Won {
					h.Errorf("commit: %+v, %v", r, err)
					return
				}
				if n%2 == 0 {
					continue
				}
				if err := eraser.Erase(h.Context(), r.Positions[0]); err != nil {
					h.Errorf("erase: %v", err)
				}
				mu.Lock()
				erased[r.Positions[0]] = true
				mu.Unlock()
			}
		})
	}
	running.Wait()
	for r, err := range h.Scan(h.Context(), 0) {
		if err != nil {
			h.Fatal(err)
		}
		if _, shown := r.Parts[storage.PartEnvelope]; shown == erased[r.Position] {
			h.Fatalf("record %d: the part is shown: %v", r.Position, shown)
		}
	}
	h.reopen() // the observed record had all parts, the stored one has not
}
