package recorder_test

import (
	"context"
	"iter"
	"log/slog"
	"testing"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/internal/testing/routertest"
	"aob.dev/writ/router/recorder"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
)

// without are records after the erasure of what can be erased of skill calls: the intents, and the
// results and texts of their outcomes.
type without struct {
	storage.Records
	erased map[int64]int // parts by position
}

func (r without) after(rec storage.Record) storage.Record {
	if s, err := state.ReadIntent(rec); rec.Kind == storage.KindIntent && (err != nil || s.Type != "skill.call") {
		return rec
	}
	left, _ := rec.Without(storage.PartEnvelope, storage.PartResult, storage.PartReason)
	r.erased[rec.Position] = len(left.Erased)
	return left
}

func (r without) Get(ctx context.Context, position int64) (storage.Record, error) {
	rec, err := r.Records.Get(ctx, position)
	return r.after(rec), err
}

func (r without) Scan(ctx context.Context, from int64) iter.Seq2[storage.Record, error] {
	return func(yield func(storage.Record, error) bool) {
		for rec, err := range r.Records.Scan(ctx, from) {
			if !yield(r.after(rec), err) {
				return
			}
		}
	}
}

// The rows of skill calls are the same after the erasure of their intents and results: they have
// sizes and outcomes, and nothing of the request.
func TestSkillCallsOfErasedIntents(t *testing.T) {
	before := documents(t)
	w := routertest.New(t, routertest.Options{})
	eventful(w)
	f := follow(t, w, before)
	f.caughtUp()
	f.stop()

	after := documents(t)
	records := without{w.Journal, map[int64]int{}}
	r := recorder.New(records, after, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	reached := make(chan error, 1)
	go func() { reached <- r.Reach(ctx, w.Journal.Next()) }()
	select {
	case err := <-reached:
		w.Must(err)
		cancel()
		w.Must(<-done)
	case err := <-done:
		cancel()
		t.Fatalf("the recorder ended: %v", err)
	}
	calls := dump(t, before, "default")["default/agent_skill_calls"]
	if diff := cmp.Diff(calls, dump(t, after, "default")["default/agent_skill_calls"]); diff != "" {
		t.Error(diff)
	}
	for _, doc := range calls {
		if records.erased[doc.Position] == 0 {
			t.Errorf("nothing of the outcome at %d was erased", doc.Position)
		}
	}
}
