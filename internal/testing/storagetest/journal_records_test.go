package storagetest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"aob.dev/writ/storage"
)

func testGet(h *harness) {
	// Records are read back as written, to the byte and the millisecond.
	r := storage.NewRecord(storage.KindControl, time.Date(1969, 1, 2, 3, 4, 5, 678_999_999, time.FixedZone("", 3600)),
		map[string]json.RawMessage{
			"empty": {}, "long": bytes.Repeat([]byte("x"), 100_000), storage.PartControl: []byte("{ \"a\" : \"ä\\u0000\" }"),
		})
	h.wins(storage.Entry{Record: r, Target: storage.NoPosition, Holder: storage.NoPosition, Writes: []storage.Subject{"", "ß/\x00"}})
	got := h.get(0)
	h.same(got, r)
	if got.Digest() != r.Digest() {
		h.Fatal("the digest of the stored record differs")
	}
	for _, p := range []int64{storage.NoPosition, 1, 1 << 40} {
		if _, err := h.Get(h.Context(), p); !errors.Is(err, storage.ErrNotFound) {
			h.Fatalf("get %d: %v", p, err)
		}
	}
}

// A record whose clock has stepped back gets the time of the latest before it, in
// one commit, across commits and across openings.
func testTimesAscend(h *harness) {
	at := func(name string, minutes int) storage.Entry {
		e := openIntent(name)
		e.Record.At = epoch.Add(time.Duration(minutes) * time.Minute)
		return e
	}
	h.wins(at("a", 0), at("b", 10), at("c", -600))
	h.wins(at("d", 9))
	h.reopen()
	h.wins(at("e", -10_000))
	outcome := record(storage.KindOutcome, "x")
	outcome.At = epoch
	if _, err := h.Finish(h.Context(), 0, 1, outcome, nil); err != nil {
		h.Fatal(err)
	}
	h.wins(at("f", 11))
	for position, minutes := range []int{0, 10, 10, 10, 10, 10, 11} {
		r := h.get(int64(position))
		h.same(r.At, epoch.Add(time.Duration(minutes)*time.Minute))
	}
}

func testScan(h *harness) {
	const n = 700 // more than a driver reads at a time
	entries := make([]storage.Entry, 100)
	for i := range n / len(entries) {
		for k := range entries {
			entries[k] = refusal(fmt.Sprint(i, k))
		}
		h.wins(entries...)
	}
	for _, from := range []int64{storage.NoPosition, 0, 1, 255, 256, 699, 700, 9999} {
		next := max(from, 0)
		for r, err := range h.Scan(h.Context(), from) {
			if err != nil || r.Position != next {
				h.Fatalf("scan from %d: position %d, %v; want %d", from, r.Position, err, next)
			}
			next++
		}
		if next != max(n, from) {
			h.Fatalf("scan from %d ended before %d", from, next)
		}
	}
	seen := 0
	for range h.Scan(h.Context(), 0) {
		if seen++; seen == 3 {
			break
		}
	}
	ctx, cancel := context.WithCancel(h.Context())
	cancel()
	for _, err := range h.Scan(ctx, 0) {
		if !errors.Is(err, context.Canceled) {
			h.Fatalf("scan with a cancelled context: %v", err)
		}
	}
}

func testScanEndsWhereItBegan(h *harness) {
	h.wins(refusal("a"))
	h.wins(refusal("b"))
	n := 0
	for _, err := range h.Scan(h.Context(), 0) {
		if err != nil {
			h.Fatal(err)
		}
		h.wins(refusal("meanwhile"))
		n++
	}
	if n != 2 {
		h.Fatalf("scan yielded %d records", n)
	}
}

func testReopen(h *harness) {
	outcome := about(storage.KindOutcome, storage.NoPosition)
	outcome.TargetPrevious = true
	h.wins(storage.Entry{Record: record(storage.KindControl, "genesis"), Target: storage.NoPosition, Holder: storage.NoPosition})
	h.wins(openIntent("open"))
	h.wins(heldIntent("held"), openIntent("taken over"), refusal("no", "s", "t"))
	h.wins(heldIntent("at once"), outcome)
	h.wins(openIntent("retried"))
	h.wins(heldIntent("released"))
	h.wins(about(storage.KindRelease, 8))
	h.take(3)
	h.finish(7, 1, "t")
	again := openIntent("retried")
	again.Holder = 7
	h.wins(again)

	// Three times: a reopened journal goes on like one that was never closed.
	for round := range int64(3) {
		before := h.reopen()
		h.same(h.observed(), before)
		h.same(h.Next(), 13+round)
		h.holds(1, waiting(1, storage.StateOpen))
		h.holds(2, waiting(2, storage.StateHeld))
		h.holds(5, done(5, 6))
		h.holds(7, done(7, 11))
		h.holds(8, waiting(8, storage.StateOpen))
		for name, position := range map[string]int64{"open": 1, "held": 2, "taken over": 3, "at once": 5, "retried": 12, "released": 8} {
			got, found, err := h.Lookup(h.Context(), key(name))
			if err != nil || !found || got.Position != position {
				h.Fatalf("lookup %s = %+v, %v, %v; want %d", name, got, found, err, position)
			}
		}
		h.waits(map[int64]int{1: 1, 3: 2, 8: 1, 12: 1})
		h.verdict(storage.Won, storage.Commit{
			ID: fmt.Sprint("round ", round), Entries: []storage.Entry{refusal("x")},
			Asserts: []storage.Assert{{Subject: "s", At: 4}, {Subject: "t", At: 11}, {Subject: "u", At: storage.NoPosition}},
		})
	}
}

func testReopenKnowsCommits(h *harness) {
	mine := storage.Commit{ID: "mine", Entries: []storage.Entry{openIntent("a"), refusal("x")}}
	first := h.verdict(storage.Won, mine)
	keyless := storage.Commit{ID: "keyless", Entries: []storage.Entry{refusal("x")}}
	second := h.verdict(storage.Won, keyless)
	// Commits that may have shared a transaction are distinguished.
	var many [callers]storage.Result
	together(func(i int) {
		r, err := h.Commit(h.Context(), storage.Commit{ID: fmt.Sprint(i), Entries: []storage.Entry{openIntent(fmt.Sprint(i))}})
		if err != nil {
			h.Error(err)
		}
		many[i] = r
	})
	h.reopen()
	h.same(h.verdict(storage.Won, mine), first)
	h.same(h.verdict(storage.Won, keyless), second)
	for i, r := range many {
		h.same(h.verdict(storage.Won, storage.Commit{ID: fmt.Sprint(i), Entries: []storage.Entry{refusal("x")}}), r)
	}
	h.same(h.Next(), int64(3+callers))
}

func testClosed(h *harness) {
	h.wins(openIntent("a"))
	for range 2 {
		if err := h.opened.Close(); err != nil {
			h.Fatalf("close: %v", err)
		}
	}
	if r, err := h.commit(refusal("late")); err == nil || r.Verdict != storage.Unknown {
		h.Fatalf("commit after close = %+v, %v", r, err)
	}
	if _, err := h.Finish(h.Context(), 0, 1, record(storage.KindOutcome, "late"), nil); err == nil {
		h.Fatal("finish after close succeeded")
	}
	if _, err := h.Take(h.Context(), 0, record(storage.KindTakeover, "late")); err == nil {
		h.Fatal("take after close succeeded")
	}
}
