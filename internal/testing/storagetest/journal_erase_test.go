package storagetest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"aob.dev/writ/intents"
	"aob.dev/writ/storage"
)

// Erasable has a part "secret" that begins with a word, and is of any length.
func erasable(kind storage.Kind, word string, length int) storage.Record {
	body := append([]byte(`"`+word), bytes.Repeat([]byte("x"), length)...)
	return storage.NewRecord(kind, epoch, map[string]json.RawMessage{
		string(kind): json.RawMessage(`{"kept":true}`), "secret": append(body, '"'), "other": json.RawMessage(`{}`),
	})
}

// testErase: an erased part is its digest, the record's digest stays, and nothing
// else of the journal changes. Without an Eraser there is nothing to test.
func testErase(h *harness) {
	eraser, ok := h.opened.(storage.Eraser)
	if !ok {
		return
	}
	// Of every size: within a page, of several, and so small that a digest is longer.
	var before []storage.Record
	for i, length := range []int{0, 10, 3_000, 20_000, 200_000} {
		e := openIntent(fmt.Sprint(i))
		e.Record = Telling(erasable(storage.KindIntent, "word", length), e.Key, intents.Allow)
		e.Writes = []storage.Subject{"plan/acme/p"}
		position := h.wins(e)
		r := h.get(position)
		before = append(before, r)
	}
	check := func(erased map[int64][]string) {
		h.Helper()
		for _, was := range before {
			want, _ := was.Without(erased[was.Position]...)
			got := h.get(was.Position)
			h.same(got, want)
			if got.Digest() != was.Digest() {
				h.Fatalf("record %d has another digest", was.Position)
			}
			h.holds(was.Position, waiting(was.Position, storage.StateOpen))
		}
	}
	erase := func(what ...storage.Erasure) {
		h.Helper()
		if err := eraser.Erase(h.Context(), what...); err != nil {
			h.Fatalf("erase %v: %v", what, err)
		}
	}
	erase()
	check(nil)
	erase(storage.Erasure{Position: 1, Parts: []string{"secret", "nothing"}})
	check(map[int64][]string{1: {"secret"}})
	// Again, and with more parts: the erased ones are unchanged.
	all := []storage.Erasure{{Position: 1, Parts: []string{"secret", "other"}}, {Position: 4, Parts: []string{"secret"}}, {Position: 0, Parts: []string{"secret"}}, {Position: 4, Parts: []string{"other"}}}
	erase(all...)
	erase(all...)
	gone := map[int64][]string{0: {"secret"}, 1: {"secret", "other"}, 4: {"secret", "other"}}
	check(gone)
	for _, p := range []int64{storage.NoPosition, h.Next()} {
		if err := eraser.Erase(h.Context(), storage.Erasure{Position: p, Parts: []string{"secret"}}); !errors.Is(err, storage.ErrNotFound) {
			h.Fatalf("erase of %d: %v", p, err)
		}
	}
	if err := eraser.Erase(h.Context(), storage.Erasure{Position: 2, Parts: []string{"secret", storage.PartDecision}}); err == nil {
		h.Fatal("what tells the key of an intent can be erased")
	}
	check(gone)
	seen := h.observed()
	h.reopen()
	check(gone)
	for i, e := range h.observed() {
		seen[i].Record, _ = seen[i].Record.Without(gone[int64(i)]...)
		h.same(e, seen[i])
	}
	h.wins(openIntent("after"))
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
				e.Record = Telling(erasable(storage.KindIntent, "word", 500*w), e.Key, intents.Allow)
				r, err := h.commit(e)
				if err != nil || r.Verdict != storage.Won {
					h.Errorf("commit: %+v, %v", r, err)
					return
				}
				if n%2 == 0 {
					continue
				}
				if err := eraser.Erase(h.Context(), storage.Erasure{Position: r.Positions[0], Parts: []string{"secret"}}); err != nil {
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
		if _, shown := r.Parts["secret"]; shown == erased[r.Position] {
			h.Fatalf("record %d: the part is shown: %v", r.Position, shown)
		}
	}
	h.reopen() // the observed record had all parts, the stored one has not
}
