package recorder_test

import (
	"context"
	"iter"
	"log/slog"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/router/recorder"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
)

// reads counts what is read of the journal.
type reads struct {
	storage.Records
	scanned, got atomic.Int64
}

func (r *reads) Scan(ctx context.Context, from int64) iter.Seq2[storage.Record, error] {
	return func(yield func(storage.Record, error) bool) {
		for rec, err := range r.Records.Scan(ctx, from) {
			r.scanned.Add(1)
			if !yield(rec, err) {
				return
			}
		}
	}
}

func (r *reads) Get(ctx context.Context, position int64) (storage.Record, error) {
	r.got.Add(1)
	return r.Records.Get(ctx, position)
}

// TestStartReadsOnce: a recorder that is given the tenants reads the journal once when it starts
// again, looks up only the intents of the last batches, and writes what a recorder that reads it
// twice writes.
func TestStartReadsOnce(t *testing.T) {
	w := worked(t, 25) // more than two batches
	d := documents(t)
	f := follow(t, w, d)
	f.caughtUp()
	f.stop()
	want := dump(t, d, "default", "system")

	w.Begun("plan_after", "feed").Started(1)
	again := &reads{Records: w.Journal}
	g := &follower{Recorder: recorder.New(again, d, slog.New(slog.DiscardHandler)), t: t, world: w, done: make(chan error, 1)}
	asked := 0
	g.Tenants = func() []string {
		asked++
		return w.Dir.Tenants()
	}
	ctx, cancel := context.WithCancel(t.Context())
	g.end = cancel
	go func() { g.done <- g.Run(ctx) }()
	g.caughtUp()
	g.stop()
	next := w.Journal.Next()
	if n := again.scanned.Load(); n != next || asked != 1 {
		t.Errorf("%d of %d records were scanned, tenants asked for %d times", n, next, asked)
	}
	if n := again.got.Load(); n > next/3 {
		t.Errorf("%d intents of %d records were looked up", n, next)
	}

	straight := documents(t)
	f = follow(t, w, straight)
	f.caughtUp()
	f.stop()
	whole := dump(t, straight, "default", "system")
	if diff := cmp.Diff(whole, dump(t, d, "default", "system")); diff != "" {
		t.Error(diff)
	}
	if cmp.Equal(want, whole) {
		t.Error("nothing was projected after the start")
	}
}

// TestStartsFromState: a recorder that is given the state after some records reads only those after
// them if its documents have these, and all of them otherwise.
func TestStartsFromState(t *testing.T) {
	w := worked(t, 25) // more than two batches
	projected, empty := documents(t), documents(t)
	f := follow(t, w, projected)
	f.caughtUp()
	f.stop()
	half := w.Journal.Next() / 4
	w.Begun("plan_after", "feed").Started(1)
	for name, d := range map[string]storage.Documents{"projected": projected, "empty": empty} {
		counted := &reads{Records: w.Journal}
		g := &follower{Recorder: recorder.New(counted, d, slog.New(slog.DiscardHandler)), t: t, world: w, done: make(chan error, 1)}
		g.Tenants, g.From = w.Dir.Tenants, state.New()
		for r, err := range w.Journal.Scan(t.Context(), 0) {
			if err != nil {
				t.Fatal(err)
			}
			if r.Position < half {
				g.From.Observe(state.EntryOf(r))
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		g.end = cancel
		go func() { g.done <- g.Run(ctx) }()
		g.caughtUp()
		g.stop()
		want := w.Journal.Next()
		if name == "projected" {
			want -= half
		}
		if n := counted.scanned.Load(); n != want {
			t.Errorf("%s: %d records were scanned, want %d", name, n, want)
		}
	}
	if diff := cmp.Diff(dump(t, empty, "default", "system"), dump(t, projected, "default", "system")); diff != "" {
		t.Error(diff)
	}
}
