package storagetest

import (
	"errors"

	"aob.dev/writ/storage"
)

func testOutcomeInSameCommit(h *harness) {
	h.wins(refusal("before"))
	outcome := about(storage.KindOutcome, storage.Nobody)
	outcome.OfPrevious = true
	order := heldOrder("a") // takes its key, takes effect at once
	first := h.wins(order, outcome, refusal("with"))
	h.holds(first, done(first, first+1))
	h.same(h.observed()[first+1].Of, first)

	open := openOrder("b")
	first = h.wins(open, outcome)
	h.holds(first, done(first, first+1))

	keyless := refusal("c") // an order that took no key may end too
	first = h.wins(keyless, outcome)
	h.holds(first, done(first, first+1))

	orders, err := h.OpenOrders(h.Context())
	if err != nil {
		h.Fatal(err)
	}
	h.same(orders, []storage.OpenOrder{})
}

func testRefusalIsNoOrder(h *harness) {
	h.wins(refusal("no"))
	if _, err := h.Holder(h.Context(), 0); !errors.Is(err, storage.ErrNotFound) {
		h.Fatalf("holder = %v", err)
	}
	if _, err := h.Finish(h.Context(), 0, 1, record(storage.KindOutcome, "x"), nil); !errors.Is(err, storage.ErrNotFound) {
		h.Fatalf("finish = %v", err)
	}
}

func testFinish(h *harness) {
	h.wins(openOrder("a"))
	outcome := record(storage.KindOutcome, "fine")
	p, err := h.Finish(h.Context(), 0, 1, outcome, []storage.Subject{"s"})
	if err != nil || p != 1 {
		h.Fatalf("finish = %d, %v", p, err)
	}
	h.holds(0, done(0, 1))
	got, found, err := h.Lookup(h.Context(), key("a"))
	if err != nil || !found {
		h.Fatalf("lookup = %v, %v", found, err)
	}
	h.same(got, done(0, 1))
	outcome.Position = 1
	h.same(h.observed()[1], storage.Entry{Record: outcome, Of: 0, Holder: storage.Nobody, Touches: []storage.Subject{"s"}})
	if _, err := h.Finish(h.Context(), 0, 1, record(storage.KindOrder, "x"), nil); err == nil {
		h.Fatal("an order record was taken as an outcome")
	}
}

func testFinishTouches(h *harness) {
	h.wins(openOrder("a"))
	if _, err := h.Finish(h.Context(), 0, 1, record(storage.KindOutcome, "x"), []storage.Subject{"s"}); err != nil {
		h.Fatal(err)
	}
	h.verdict(storage.Stale, storage.Commit{
		ID: "1", Entries: []storage.Entry{refusal("x")},
		Asserts: []storage.Assert{{Subject: "s", At: storage.Nobody}},
	})
	h.verdict(storage.Won, storage.Commit{
		ID: "2", Entries: []storage.Entry{refusal("x")},
		Asserts: []storage.Assert{{Subject: "s", At: 1}},
	})
}

func testFirstOutcomeWins(h *harness) {
	h.wins(openOrder("a"))
	if _, err := h.Finish(h.Context(), 0, 1, record(storage.KindOutcome, "first"), nil); err != nil {
		h.Fatal(err)
	}
	for _, attempt := range []int{0, 1, 2} {
		if _, err := h.Finish(h.Context(), 0, attempt, record(storage.KindOutcome, "late"), nil); !errors.Is(err, storage.ErrFinished) {
			h.Fatalf("late outcome of attempt %d: %v", attempt, err)
		}
	}
	if _, err := h.Take(h.Context(), 0, record(storage.KindTakeover, "late")); !errors.Is(err, storage.ErrFinished) {
		h.Fatalf("take of a finished order: %v", err)
	}
	h.holds(0, done(0, 1))
	h.same(h.Next(), int64(2))
}

func testAttempts(h *harness) {
	h.wins(openOrder("a"))
	for want := 2; want <= 3; want++ {
		got, err := h.Take(h.Context(), 0, record(storage.KindTakeover, "again"))
		if err != nil || got != want {
			h.Fatalf("take = %d, %v; want %d", got, err, want)
		}
	}
	orders, err := h.OpenOrders(h.Context())
	if err != nil {
		h.Fatal(err)
	}
	h.same(orders, []storage.OpenOrder{{Position: 0, Attempt: 3}})
	for _, attempt := range []int{0, 1, 2, 4} {
		if _, err := h.Finish(h.Context(), 0, attempt, record(storage.KindOutcome, "x"), nil); !errors.Is(err, storage.ErrFinished) {
			h.Fatalf("outcome of attempt %d: %v", attempt, err)
		}
	}
	if p, err := h.Finish(h.Context(), 0, 3, record(storage.KindOutcome, "x"), nil); err != nil || p != 3 {
		h.Fatalf("finish = %d, %v", p, err)
	}
	if _, err := h.Take(h.Context(), 0, record(storage.KindOutcome, "x")); err == nil {
		h.Fatal("an outcome record was taken as a takeover")
	}
}

func testHeldAndReleased(h *harness) {
	h.wins(heldOrder("a"))
	got, _, err := h.Lookup(h.Context(), key("a"))
	if err != nil {
		h.Fatal(err)
	}
	h.same(got, waiting(0, storage.StateHeld))
	if _, err := h.Finish(h.Context(), 0, 1, record(storage.KindOutcome, "x"), nil); !errors.Is(err, storage.ErrHeld) {
		h.Fatalf("finish of a held order: %v", err)
	}
	if _, err := h.Take(h.Context(), 0, record(storage.KindTakeover, "x")); !errors.Is(err, storage.ErrHeld) {
		h.Fatalf("take of a held order: %v", err)
	}
	h.wins(about(storage.KindRelease, 0))
	h.holds(0, waiting(0, storage.StateOpen))
	orders, err := h.OpenOrders(h.Context())
	if err != nil {
		h.Fatal(err)
	}
	h.same(orders, []storage.OpenOrder{{Position: 0, Attempt: 1}})
	if p, err := h.Finish(h.Context(), 0, 1, record(storage.KindOutcome, "x"), nil); err != nil || p != 2 {
		h.Fatalf("finish = %d, %v", p, err)
	}
	h.holds(0, done(0, 2))
}

func testHeldEnds(h *harness) {
	h.wins(heldOrder("a"))
	h.wins(refusal("approval"), about(storage.KindOutcome, 0))
	h.holds(0, done(0, 2))
}

func testMovedOrderIsStale(h *harness) {
	h.wins(heldOrder("held"))
	h.wins(openOrder("open"))
	h.wins(openOrder("done"))
	if _, err := h.Finish(h.Context(), 2, 1, record(storage.KindOutcome, "x"), nil); err != nil {
		h.Fatal(err)
	}
	for name, e := range map[string]storage.Entry{
		"release of an open order":     about(storage.KindRelease, 1),
		"release of a finished order":  about(storage.KindRelease, 2),
		"takeover of a held order":     about(storage.KindTakeover, 0),
		"takeover of a finished order": about(storage.KindTakeover, 2),
		"second outcome":               about(storage.KindOutcome, 2),
	} {
		h.verdict(storage.Stale, storage.Commit{ID: name, Entries: []storage.Entry{openOrder(name), e}})
	}
	h.verdict(storage.Stale, storage.Commit{ID: "twice", Entries: []storage.Entry{
		about(storage.KindRelease, 0), about(storage.KindRelease, 0),
	}})
	h.wins(about(storage.KindRelease, 0), about(storage.KindTakeover, 0), about(storage.KindTakeover, 1))
	orders, err := h.OpenOrders(h.Context())
	if err != nil {
		h.Fatal(err)
	}
	h.same(orders, []storage.OpenOrder{{Position: 0, Attempt: 2}, {Position: 1, Attempt: 2}})
}

func testUnknownOrders(h *harness) {
	h.wins(refusal("x"))
	for _, p := range []int64{storage.Nobody, -7, 1, 1 << 40} {
		if _, err := h.Holder(h.Context(), p); !errors.Is(err, storage.ErrNotFound) {
			h.Fatalf("holder of %d: %v", p, err)
		}
		if _, err := h.Finish(h.Context(), p, 1, record(storage.KindOutcome, "x"), nil); !errors.Is(err, storage.ErrNotFound) {
			h.Fatalf("finish of %d: %v", p, err)
		}
		if _, err := h.Take(h.Context(), p, record(storage.KindTakeover, "x")); !errors.Is(err, storage.ErrNotFound) {
			h.Fatalf("take of %d: %v", p, err)
		}
	}
}

func testOpenOrders(h *harness) {
	for _, name := range []string{"a", "b", "c", "d"} {
		h.wins(openOrder(name))
	}
	h.wins(heldOrder("held"))
	if _, err := h.Take(h.Context(), 3, record(storage.KindTakeover, "x")); err != nil {
		h.Fatal(err)
	}
	if _, err := h.Finish(h.Context(), 1, 1, record(storage.KindOutcome, "x"), nil); err != nil {
		h.Fatal(err)
	}
	orders, err := h.OpenOrders(h.Context())
	if err != nil {
		h.Fatal(err)
	}
	h.same(orders, []storage.OpenOrder{{Position: 0, Attempt: 1}, {Position: 2, Attempt: 1}, {Position: 3, Attempt: 2}})
}
