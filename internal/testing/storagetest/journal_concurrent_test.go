package storagetest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"aob.dev/writ/storage"
)

const callers = 24

// together runs f on many goroutines that start at the same moment.
func together(f func(i int)) {
	var ready, running sync.WaitGroup
	ready.Add(callers)
	for i := range callers {
		running.Go(func() {
			ready.Done()
			ready.Wait()
			f(i)
		})
	}
	running.Wait()
}

// testObserverBeforeAnswer blocks the observer: no call may return meanwhile.
func testObserverBeforeAnswer(h *harness) {
	var answered atomic.Bool
	h.during = func(storage.Entry) {
		for range 2000 { // many turns for a caller that could go on
			runtime.Gosched()
		}
		if answered.Load() {
			h.Error("a call returned before its record was observed")
		}
	}
	call := func(f func() error) {
		h.Helper()
		answered.Store(false)
		err := f()
		answered.Store(true)
		if err != nil {
			h.Fatal(err)
		}
	}
	for i := range 10 {
		var of int64
		call(func() error {
			r, err := h.commit(openIntent(fmt.Sprint(i)))
			if err == nil {
				of = r.Positions[0]
			}
			return err
		})
		if _, err := h.Get(h.Context(), of); err != nil {
			h.Fatalf("position %d was answered before it could be read: %v", of, err)
		}
		call(func() error { _, err := h.Take(h.Context(), of, record(storage.KindTakeover, "x")); return err })
		call(func() error {
			_, err := h.Finish(h.Context(), of, 2, record(storage.KindOutcome, "x"), nil)
			return err
		})
	}
}

func testCancelledBefore(h *harness) {
	ctx, cancel := context.WithCancel(h.Context())
	cancel()
	r, err := h.Commit(ctx, storage.Commit{ID: "1", Entries: []storage.Entry{openIntent("a")}})
	if !errors.Is(err, context.Canceled) || r.Verdict != storage.Unknown {
		h.Fatalf("commit = %+v, %v", r, err)
	}
	if _, _, err := h.Lookup(ctx, key("a")); !errors.Is(err, context.Canceled) {
		h.Fatalf("lookup: %v", err)
	}
	if _, err := h.Get(ctx, 0); !errors.Is(err, context.Canceled) {
		h.Fatalf("get: %v", err)
	}
}

// testCancelledWait cancels while commits are under way: a caller without an answer asks again with
// the same ID and gets the one answer there is.
func testCancelledWait(h *harness) {
	together(func(i int) {
		c := storage.Commit{ID: fmt.Sprint("mine ", i), Entries: []storage.Entry{openIntent(fmt.Sprint(i))}}
		ctx, cancel := context.WithCancel(h.Context())
		go cancel()
		r, err := h.Commit(ctx, c)
		if err != nil && (!errors.Is(err, context.Canceled) || r.Verdict != storage.Unknown) {
			h.Errorf("commit = %+v, %v", r, err)
		}
		again, err := h.Commit(h.Context(), c)
		if err != nil || again.Verdict != storage.Won {
			h.Errorf("asked again = %+v, %v", again, err)
		}
		if r.Verdict == storage.Won && !slices.Equal(r.Positions, again.Positions) {
			h.Errorf("won at %v and again at %v", r.Positions, again.Positions)
		}
	})
	h.same(h.Next(), int64(callers))
}

func testOneKeyManyCallers(h *harness) {
	var winners atomic.Int64
	together(func(i int) {
		r, err := h.commit(openIntent("the one"), refusal(fmt.Sprint(i)))
		switch {
		case err != nil:
			h.Error(err)
		case r.Verdict == storage.Won:
			winners.Add(1)
		case r.Verdict != storage.Lost || r.Winner != 0 || r.Entry != 0:
			h.Errorf("loser got %+v", r)
		}
	})
	h.same(winners.Load(), int64(1))
	h.same(h.Next(), int64(2))
}

// testOneSubjectManyWriters lets all add to one subject, each asserting what it saw last: no two of
// them may have read the same state.
func testOneSubjectManyWriters(h *harness) {
	together(func(i int) {
		at := storage.NoPosition
		for try := 0; ; try++ {
			r, err := h.Commit(h.Context(), storage.Commit{
				ID: fmt.Sprint(i, "/", try), Entries: []storage.Entry{refusal("x", "s")},
				Asserts: []storage.Assert{{Subject: "s", At: at}},
			})
			if err != nil {
				h.Error(err)
				return
			}
			if r.Verdict == storage.Won {
				if want := at + 1; r.Positions[0] != want {
					h.Errorf("won at %d after %d", r.Positions[0], at)
				}
				return
			}
			at = h.Next() - 1
		}
	})
	h.same(h.Next(), int64(callers))
}

func testManyCallersGapFree(h *harness) {
	const each = 10
	var mu sync.Mutex
	var all []int64
	together(func(i int) {
		for k := range each {
			r, err := h.commit(openIntent(fmt.Sprint(i, "/", k)), refusal("x"))
			if err != nil || r.Verdict != storage.Won || r.Positions[1] != r.Positions[0]+1 {
				h.Errorf("commit = %+v, %v", r, err)
				return
			}
			p, err := h.Finish(h.Context(), r.Positions[0], 1, record(storage.KindOutcome, "x"), nil)
			if err != nil {
				h.Error(err)
				return
			}
			mu.Lock()
			all = append(all, r.Positions[0], r.Positions[1], p)
			mu.Unlock()
		}
	})
	slices.Sort(all)
	for i, p := range all {
		if p != int64(i) {
			h.Fatalf("positions have a gap or a double at %d: %d", i, p)
		}
	}
	h.same(h.Next(), int64(callers*each*3))
}

func testOneOutcomeOfMany(h *harness) {
	h.wins(openIntent("a"))
	var winners atomic.Int64
	together(func(int) {
		switch _, err := h.Finish(h.Context(), 0, 1, record(storage.KindOutcome, "x"), nil); {
		case err == nil:
			winners.Add(1)
		case !errors.Is(err, storage.ErrFinished):
			h.Error(err)
		}
	})
	h.same(winners.Load(), int64(1))
	h.holds(0, done(0, 1))
}
