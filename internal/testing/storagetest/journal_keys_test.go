package storagetest

import (
	"time"

	"aob.dev/writ/storage"
)

// testKeysLast: 24 hours after an intent's end its key is still its own, by the
// clock of the records; one that is open or held retains it indefinitely.
// It makes no difference whether the journal was closed in between.
func testKeysLast(h *harness) {
	h.wins(openIntent("done"))
	h.finish(0, 1)
	h.wins(openIntent("open"), heldIntent("held"))
	for _, later := range []time.Duration{24 * time.Hour, 48 * time.Hour, 5 * 365 * 24 * time.Hour} {
		e := refusal("later")
		e.Record.At = epoch.Add(later)
		h.wins(e)
		for range 2 {
			if later <= 24*time.Hour {
				h.keyHolds("done", done(0, 1))
			}
			h.keyHolds("open", waiting(2, storage.StateOpen))
			h.keyHolds("held", waiting(3, storage.StateHeld))
			h.reopen()
		}
	}
	for _, name := range []string{"open", "held"} {
		h.verdict(storage.Lost, storage.Commit{ID: name, Entries: []storage.Entry{openIntent(name)}})
	}
}

func (h *harness) keyHolds(name string, want storage.Holder) {
	h.Helper()
	got, found, err := h.Lookup(h.Context(), key(name))
	if err != nil || !found {
		h.Fatalf("the key of %s: %v, %v", name, found, err)
	}
	h.same(got, want)
}
