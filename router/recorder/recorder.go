// Package recorder follows the journal and writes what can be made from it: the
// documents of agent_plans, the events of agent_events, the calls of
// agent_skill_calls and the search index of orders. Nobody else writes these, and
// all can be dropped and built again with the same content. It also writes the rows of
// tools in agent_messages, beside those of turns.
package recorder

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/internal/bus"
	"aob.dev/writ/internal/clock"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
)

// Recorder folds the journal into projections, in order and once: every write
// is fenced by the position or create-only, so that after a crash it goes over
// the last records again and changes nothing. Its outage delays reads, never orders.
type Recorder struct {
	// Tenants whose orders the documents may have, as the router's directory knows
	// them: asked once, when Run begins. Nil: everything is projected again.
	Tenants func() []string
	// From is the state after some of the records, to begin with where the documents have
	// all of these. It is the recorder's own from now on. Nil: all records are read.
	From *state.State
	// Content reads a blob of tenant system: agents that are no part of an order.
	Content func(ctx context.Context, digest string) ([]byte, error)
	// Publish is given events that are written, in order, and does not wait. After a crash it
	// is given those of the last records again. Nil: nobody hears of them.
	Publish func([]bus.Event)

	records   storage.Records
	documents storage.Documents
	log       *slog.Logger
	fold      *state.State // its own: a plan's document is the plan as of each record; see told
	batch     *batch       // gathered and not written; of Run's goroutine

	*storage.Progress // of the records that are projected
}

// New begins with the first record; Run does the work.
func New(records storage.Records, documents storage.Documents, log *slog.Logger) *Recorder {
	return &Recorder{
		Content: func(context.Context, string) ([]byte, error) { return nil, storage.ErrNotFound },
		records: records, documents: documents, log: log, fold: state.New(), batch: newBatch(),
		Progress: storage.NewProgress(),
	}
}

// retryAfter is how long a store that refuses is left alone.
const retryAfter = time.Second

// Run projects records until ctx ends. A store that is down is tried again; a
// record that cannot be projected stops it with an error, as nothing may be
// left out.
func (r *Recorder) Run(ctx context.Context) error {
	skip, err := r.Projected(ctx)
	if err != nil {
		return nil // the only error is that ctx has ended
	}
	next := int64(0)
	if r.From != nil && r.From.Next() <= skip {
		r.fold, next = r.From, r.From.Next()
	}
	r.From = nil
	for {
		for rec, err := range r.records.Scan(ctx, next) {
			if ctx.Err() != nil {
				return nil
			}
			if err != nil {
				return fmt.Errorf("recorder: %w", err)
			}
			if err := r.observe(ctx, rec, rec.Position >= skip); err != nil {
				if ctx.Err() != nil {
					return nil
				}
				return fmt.Errorf("recorder: record %d: %w", rec.Position, err)
			}
			next = rec.Position + 1
			if r.batch.records, r.batch.next = r.batch.records+1, next; r.batch.records < maxBatch {
				continue
			}
			if err := r.flush(ctx); err != nil {
				return r.stopped(ctx, err)
			}
		}
		if err := r.flush(ctx); err != nil {
			return r.stopped(ctx, err)
		}
		if r.Gather(ctx) != nil {
			return nil
		}
	}
}

// stopped is the error that ends Run, if it is not that ctx has ended.
func (r *Recorder) stopped(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return fmt.Errorf("recorder: before record %d: %w", r.Reached(), err)
	}
	return nil
}

// Projected is a position up to which everything surely is projected: a batch before the
// newest order in the search index, which is written last of its batch. The only error is
// that ctx has ended.
func (r *Recorder) Projected(ctx context.Context) (position int64, err error) {
	if r.Tenants == nil {
		return 0, nil
	}
	for _, tenant := range r.Tenants() {
		err := r.patiently(ctx, storage.IndexOrders, func() error {
			page, err := r.documents.Search(ctx, tenant, storage.IndexOrders, storage.Query{Sort: "-position", Limit: 1})
			for _, newest := range page.Documents {
				position = max(position, newest.Position-maxBatch)
			}
			return err
		})
		if err != nil {
			return 0, err
		}
	}
	return position, nil
}

// State is what the recorder has of the records that it has seen, once Run has ended.
func (r *Recorder) State() *state.State { return r.fold }

// observe folds one record and, if write is set, gathers what follows from it.
func (r *Recorder) observe(ctx context.Context, rec storage.Record, write bool) error {
	if !write {
		r.fold.Observe(state.EntryOf(rec))
		return r.fold.Err()
	}
	var s state.Order // of the order that it is, or is about
	var out intents.Outcome
	var err error
	switch rec.Kind { //nolint:exhaustive // others are about no order, or look for it themselves
	case storage.KindOrder:
		s, err = state.ReadOrder(rec)
	case storage.KindOutcome:
		var of int64
		if out, of, err = state.OutcomeOf(rec); err == nil {
			s, err = r.order(ctx, of)
		}
	}
	if err != nil {
		return err
	}
	before := r.plan(s)
	tenant, ends := r.fold.EndedWith(s)
	r.fold.Observe(state.EntryOf(rec))
	if err := r.fold.Err(); err != nil {
		return err
	}
	after, err := r.told(ctx, s.Tenant, r.planID(s))
	if err != nil {
		return err
	}
	switch rec.Kind {
	case storage.KindOrder:
		about := r.ofApproval(s)
		if err := r.writeEvents(about, orderEvents(about, before, after), rec); err != nil {
			return err
		}
		r.writePlan(after, rec)
		if err := r.writeTool(s, rec); err != nil {
			return err
		}
		for _, id := range ends {
			if err := r.writePlanOf(ctx, tenant, id, rec); err != nil {
				return err
			}
		}
		if s.Decision.Verdict == intents.Allow {
			if err := errors.Join(r.erased(ctx, s, rec), r.writeAgents(ctx, s, rec)); err != nil {
				return err
			}
		}
		return r.writeIndex(s)
	case storage.KindRelease:
		return r.released(ctx, rec)
	case storage.KindOutcome:
		if err := r.writeEvents(s, outcomeEvents(s, out, before, after), rec); err != nil {
			return err
		}
		if err := errors.Join(r.writeCall(s, out, rec), r.writeToolOutcome(s, out, rec), r.writeLines(s, out, after, rec)); err != nil {
			return err
		}
		r.writePlan(after, rec)
		return nil
	default:
		return nil
	}
}

// order reads the order at a position.
func (r *Recorder) order(ctx context.Context, position int64) (state.Order, error) {
	rec, err := r.records.Get(ctx, position)
	if err != nil {
		return state.Order{}, err
	}
	return state.ReadOrder(rec)
}

// patiently asks a store. One that is down is tried again until ctx ends.
func (r *Recorder) patiently(ctx context.Context, index string, ask func() error) error {
	for {
		err := ask()
		var schema *storage.SchemaError
		if err == nil || errors.As(err, &schema) {
			return err
		}
		if ctx.Err() == nil {
			r.log.WarnContext(ctx, "projection waits for its store", slog.String("index", index), slog.String("error", err.Error()))
		}
		if err := clock.Sleep(ctx, retryAfter); err != nil {
			return err
		}
	}
}
