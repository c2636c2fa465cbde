package storagetest

import (
	"errors"

	"aob.dev/writ/storage"
)

func testOutcomeInSameCommit(h *harness) {
	h.wins(refusal("before"))
	outcome := about(storage.KindOutcome, storage.NoPosition)
	outcome.TargetPrevious = true
	intent := heldIntent("a") // takes its key, takes effect at once
	first := h.wins(intent, outcome, refusal("with"))
	h.holds(first, done(first, first+1))
	h.same(h.observed()[first+1].Target, first)

	open := openIntent("b")
	first = h.wins(open, outcome)
	h.holds(first, done(first, first+1))

	keyless := refusal("c") // an intent that took no key may end too
	first = h.wins(keyless, outcome)
	h.holds(first, done(first, first+1))

	h.waits(nil)
}

func testRefusalIsNoIntent(h *harness) {
	h.wins(refusal("no"))
	if _, err := h.Holder(h.Context(), 0); !errors.Is(err, storage.ErrNotFound) {
		h.Fatalf("holder = %v", err)
	}
	h.finishFails(storage.ErrNotFound, 0, 1)
}

func testFinish(h *harness) {
	h.wins(openIntent("a"))
	outcome := record(storage.KindOutcome, "fine")
	p, err := h.Finish(h.Context(), 0, 1, outcome, []storage.Subject{"s"})
	if err != nil || p != 1 {
		h.Fatalf("finish = %d, %v", p, err)
	}
	h.holds(0, done(0, 1))
	h.keyHolds("a", done(0, 1))
	outcome.Position = 1
	h.same(h.observed()[1], storage.Entry{Record: outcome, Target: 0, Holder: storage.NoPosition, Writes: []storage.Subject{"s"}})
	if _, err := h.Finish(h.Context(), 0, 1, record(storage.KindIntent, "x"), nil); err == nil {
		h.Fatal("an intent record was taken as an outcome")
	}
}

func testFinishWrites(h *harness) {
	h.wins(openIntent("a"))
	h.finish(0, 1, "s")
	h.verdict(storage.Stale, storage.Commit{
		ID: "1", Entries: []storage.Entry{refusal("x")},
		Asserts: []storage.Assert{{Subject: "s", At: storage.NoPosition}},
	})
	h.verdict(storage.Won, storage.Commit{
		ID: "2", Entries: []storage.Entry{refusal("x")},
		Asserts: []storage.Assert{{Subject: "s", At: 1}},
	})
}

func testFirstOutcomeWins(h *harness) {
	h.wins(openIntent("a"))
	h.finish(0, 1)
	for _, attempt := range []int{0, 1, 2} {
		h.finishFails(storage.ErrFinished, 0, attempt)
	}
	h.takeFails(storage.ErrFinished, 0)
	h.holds(0, done(0, 1))
	h.same(h.Next(), int64(2))
}

func testAttempts(h *harness) {
	h.wins(openIntent("a"))
	for want := 2; want <= 3; want++ {
		h.same(h.take(0), want)
	}
	h.waits(map[int64]int{0: 3})
	for _, attempt := range []int{0, 1, 2, 4} {
		h.finishFails(storage.ErrFinished, 0, attempt)
	}
	h.same(h.finish(0, 3), int64(3))
	if _, err := h.Take(h.Context(), 0, record(storage.KindOutcome, "x")); err == nil {
		h.Fatal("an outcome record was taken as a takeover")
	}
}

func testHeldAndReleased(h *harness) {
	h.wins(heldIntent("a"))
	h.keyHolds("a", waiting(0, storage.StateHeld))
	h.finishFails(storage.ErrHeld, 0, 1)
	h.takeFails(storage.ErrHeld, 0)
	h.wins(about(storage.KindRelease, 0))
	h.holds(0, waiting(0, storage.StateOpen))
	h.waits(map[int64]int{0: 1})
	h.same(h.finish(0, 1), int64(2))
	h.holds(0, done(0, 2))
}

func testHeldEnds(h *harness) {
	h.wins(heldIntent("a"))
	h.wins(refusal("approval"), about(storage.KindOutcome, 0))
	h.holds(0, done(0, 2))
}

func testTransitionedIntentIsStale(h *harness) {
	h.wins(heldIntent("held"))
	h.wins(openIntent("open"))
	h.wins(openIntent("done"))
	h.finish(2, 1)
	for name, e := range map[string]storage.Entry{
		"release of an open intent":     about(storage.KindRelease, 1),
		"release of a finished intent":  about(storage.KindRelease, 2),
		"takeover of a held intent":     about(storage.KindTakeover, 0),
		"takeover of a finished intent": about(storage.KindTakeover, 2),
		"second outcome":                about(storage.KindOutcome, 2),
	} {
		h.verdict(storage.Stale, storage.Commit{ID: name, Entries: []storage.Entry{openIntent(name), e}})
	}
	h.verdict(storage.Stale, storage.Commit{ID: "twice", Entries: []storage.Entry{
		about(storage.KindRelease, 0), about(storage.KindRelease, 0),
	}})
	h.wins(about(storage.KindRelease, 0), about(storage.KindTakeover, 0), about(storage.KindTakeover, 1))
	h.waits(map[int64]int{0: 2, 1: 2})
}

func testUnknownIntents(h *harness) {
	h.wins(refusal("x"))
	for _, p := range []int64{storage.NoPosition, -7, 1, 1 << 40} {
		if _, err := h.Holder(h.Context(), p); !errors.Is(err, storage.ErrNotFound) {
			h.Fatalf("holder of %d: %v", p, err)
		}
		h.finishFails(storage.ErrNotFound, p, 1)
		h.takeFails(storage.ErrNotFound, p)
	}
}

func testOpenIntents(h *harness) {
	for _, name := range []string{"a", "b", "c", "d"} {
		h.wins(openIntent(name))
	}
	h.wins(heldIntent("held"))
	h.take(3)
	h.finish(1, 1)
	h.waits(map[int64]int{0: 1, 2: 1, 3: 2})
}
