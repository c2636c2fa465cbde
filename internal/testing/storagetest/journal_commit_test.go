package storagetest

import (
	"strings"

	"aob.dev/writ/storage"
)

func testCommitWins(h *harness) {
	if n := h.Next(); n != 0 {
		h.Fatalf("a new journal has Next %d", n)
	}
	if _, found, err := h.Lookup(h.Context(), key("a")); found || err != nil {
		h.Fatalf("lookup of a free key = %v, %v", found, err)
	}
	e := openIntent("a")
	if p := h.wins(e); p != 0 {
		h.Fatalf("first position is %d", p)
	}
	h.keyHolds("a", waiting(0, storage.StateOpen))
	h.holds(0, waiting(0, storage.StateOpen))
	e.Record.Position = 0
	h.same(h.observed(), []storage.Entry{e})
}

func testCommitSeveral(h *harness) {
	h.wins(refusal("before"))
	r := h.verdict(storage.Won, storage.Commit{ID: "several", Entries: []storage.Entry{
		openIntent("a"), heldIntent("b"), refusal("c", "plan/acme/p"),
	}})
	h.same(r.Positions, []int64{1, 2, 3})
	h.holds(1, waiting(1, storage.StateOpen))
	h.holds(2, waiting(2, storage.StateHeld))
	h.same(h.Next(), int64(4))
}

func testOwnCommitWinsAgain(h *harness) {
	c := storage.Commit{
		ID: "mine", Entries: []storage.Entry{openIntent("a"), refusal("b", "s")},
		Asserts: []storage.Assert{{Subject: "s", At: storage.NoPosition}},
	}
	first := h.verdict(storage.Won, c)
	h.wins(refusal("between", "s"))
	// Its key is taken and its assert no longer holds: it has won all the same.
	again := h.verdict(storage.Won, c)
	h.same(again.Positions, first.Positions)
	h.same(h.Next(), int64(3))
}

func testKeyLost(h *harness) {
	h.wins(refusal("before"))
	h.wins(openIntent("a"))
	h.same(h.verdict(storage.Lost, storage.Commit{ID: "other", Entries: []storage.Entry{openIntent("a")}}).Winner, int64(1))
	h.finish(1, 1)
	// A finished intent retains its key.
	h.same(h.verdict(storage.Lost, storage.Commit{ID: "third", Entries: []storage.Entry{openIntent("a")}}).Winner, int64(1))
}

func testLostBeforeStale(h *harness) {
	h.wins(openIntent("a"))
	h.verdict(storage.Lost, storage.Commit{
		ID: "both", Entries: []storage.Entry{openIntent("a")},
		Asserts: []storage.Assert{{Subject: "s", At: 7}},
	})
}

func testLostNamesEntry(h *harness) {
	h.wins(openIntent("a"))
	h.wins(openIntent("b"))
	r := h.verdict(storage.Lost, storage.Commit{ID: "batch", Entries: []storage.Entry{
		openIntent("new"), refusal("r"), openIntent("b"), openIntent("a"),
	}})
	h.same([]int64{int64(r.Entry), r.Winner}, []int64{2, 1})
	if _, found, _ := h.Lookup(h.Context(), key("new")); found {
		h.Fatal("a key of a lost commit is taken")
	}
}

func testHolderGivesKeyOn(h *harness) {
	h.wins(openIntent("a"))
	h.finish(0, 1)
	again := openIntent("a")
	again.Holder = 0
	if p := h.wins(again); p != 2 {
		h.Fatalf("position %d", p)
	}
	h.keyHolds("a", waiting(2, storage.StateOpen))
	// The freed key can be taken on once only.
	h.same(h.verdict(storage.Lost, storage.Commit{ID: "late", Entries: []storage.Entry{again}}).Winner, int64(2))
}

func testOpenHolderKeepsKey(h *harness) {
	h.wins(openIntent("a"))
	h.wins(heldIntent("b"))
	for i, name := range []string{"a", "b"} {
		e := openIntent(name)
		e.Holder = int64(i)
		h.same(h.verdict(storage.Lost, storage.Commit{ID: "steal " + name, Entries: []storage.Entry{e}}).Winner, int64(i))
	}
}

func testStale(h *harness) {
	at := func(s storage.Subject, p int64) []storage.Assert { return []storage.Assert{{Subject: s, At: p}} }
	h.verdict(storage.Stale, storage.Commit{ID: "1", Entries: []storage.Entry{refusal("x")}, Asserts: at("s", 0)})
	h.verdict(storage.Won, storage.Commit{ID: "2", Entries: []storage.Entry{refusal("x", "s")}, Asserts: at("s", storage.NoPosition)})
	h.verdict(storage.Stale, storage.Commit{ID: "3", Entries: []storage.Entry{refusal("x", "s")}, Asserts: at("s", storage.NoPosition)})
	h.verdict(storage.Won, storage.Commit{ID: "4", Entries: []storage.Entry{refusal("x", "s", "t")}, Asserts: at("s", 0)})
	h.verdict(storage.Stale, storage.Commit{ID: "5", Entries: []storage.Entry{refusal("x")}, Asserts: at("s", 0)})
	h.verdict(storage.Stale, storage.Commit{
		ID: "6", Entries: []storage.Entry{refusal("x")},
		Asserts: append(at("s", 1), at("t", storage.NoPosition)...),
	})
	// A commit that was stale may be tried again under its ID.
	h.verdict(storage.Won, storage.Commit{
		ID: "6", Entries: []storage.Entry{refusal("x")},
		Asserts: append(at("s", 1), at("t", 1)...),
	})
}

func testLosersWriteNothing(h *harness) {
	h.wins(openIntent("a"))
	h.wins(refusal("x", "s"))
	before := h.observed()
	h.verdict(storage.Lost, storage.Commit{ID: "lost", Entries: []storage.Entry{
		openIntent("b"), openIntent("a"), refusal("y", "s", "u"),
	}})
	h.verdict(storage.Stale, storage.Commit{
		ID: "stale", Asserts: []storage.Assert{{Subject: "s", At: storage.NoPosition}},
		Entries: []storage.Entry{openIntent("b"), refusal("y", "s", "u")},
	})
	h.same(h.observed(), before)
	// Neither their key nor their subject has changed.
	h.verdict(storage.Won, storage.Commit{
		ID: "after", Entries: []storage.Entry{openIntent("b")},
		Asserts: []storage.Assert{{Subject: "s", At: 1}, {Subject: "u", At: storage.NoPosition}},
	})
}

func testMalformedCommits(h *harness) {
	taken := refusal("x")
	taken.Record.Kind, taken.Take = storage.KindControl, true
	odd := refusal("x")
	odd.Record.Kind = "rumour"
	previous := about(storage.KindOutcome, storage.NoPosition)
	previous.TargetPrevious = true
	for name, c := range map[string]storage.Commit{
		"no ID":                   {Entries: []storage.Entry{refusal("x")}},
		"an endless ID":           {ID: strings.Repeat("x", 1000), Entries: []storage.Entry{refusal("x")}},
		"no entries":              {ID: "1"},
		"unknown kind":            {ID: "1", Entries: []storage.Entry{odd}},
		"a control takes a key":   {ID: "1", Entries: []storage.Entry{taken}},
		"the same key twice":      {ID: "1", Entries: []storage.Entry{openIntent("a"), openIntent("a")}},
		"an outcome of nothing":   {ID: "1", Entries: []storage.Entry{about(storage.KindOutcome, storage.NoPosition)}},
		"nothing before":          {ID: "1", Entries: []storage.Entry{previous}},
		"an outcome of itself":    {ID: "1", Entries: []storage.Entry{about(storage.KindOutcome, 0)}},
		"a release of the future": {ID: "1", Entries: []storage.Entry{about(storage.KindRelease, 9)}},
	} {
		if r, err := h.Commit(h.Context(), c); err == nil || r.Verdict != storage.Unknown {
			h.Fatalf("%s: %+v, %v; want an error", name, r, err)
		}
	}
	h.same(h.Next(), int64(0))
}
