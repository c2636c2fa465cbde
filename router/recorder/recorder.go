// Package recorder follows the journal and writes what can be made from it: the
// documents of agent_plans, the events of agent_events, the calls of
// agent_skill_calls and the search index of orders. Nobody else writes these, and
// all can be dropped and built again with the same content.
package recorder

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
)

// Recorder folds the journal into projections, in order and once: every write
// is fenced by the position or create-only, so that after a crash it goes over
// the last records again and changes nothing. Its outage delays reads, never orders.
type Recorder struct {
	// Tenants whose orders the journal has, as the router's directory knows them:
	// asked once, when Run begins. Nil: Run reads the whole journal for them first.
	Tenants func() []string
	// From is the state after some of the records, to begin with where the documents have
	// all of these. It is the recorder's own from now on. Nil: all records are read.
	From *state.State

	records   storage.Records
	documents storage.Documents
	log       *slog.Logger
	fold      *state.State // its own: a plan's document is the plan as of each record; see told
	batch     *batch       // gathered and not written; of Run's goroutine
	wake      chan struct{}

	mu      sync.Mutex    // guards reached and moved
	reached int64         // position after the last projected record
	moved   chan struct{} // closed whenever reached grows
}

// New begins with the first record; Run does the work.
func New(records storage.Records, documents storage.Documents, log *slog.Logger) *Recorder {
	return &Recorder{
		records: records, documents: documents, log: log, fold: state.New(), batch: newBatch(),
		wake: make(chan struct{}, 1), moved: make(chan struct{}),
	}
}

// Wake says that there are new records. It never blocks.
func (r *Recorder) Wake() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// Reach waits until every record before a position is projected.
func (r *Recorder) Reach(ctx context.Context, position int64) error {
	for {
		r.mu.Lock()
		reached, moved := r.reached, r.moved
		r.mu.Unlock()
		if reached >= position {
			return nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Reached is the position after the last record that the documents have.
func (r *Recorder) Reached() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.reached
}

func (r *Recorder) reach(position int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reached = position
	close(r.moved)
	r.moved = make(chan struct{})
}

// retryAfter is how long a store that refuses is left alone.
const retryAfter = time.Second

// Run projects records until ctx ends. A store that is down is tried again; a
// record that cannot be projected stops it with an error, as nothing may be
// left out.
func (r *Recorder) Run(ctx context.Context) error {
	skip, err := r.projected(ctx)
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
		select {
		case <-ctx.Done():
			return nil
		case <-r.wake:
		}
	}
}

// stopped is the error that ends Run, if it is not that ctx has ended.
func (r *Recorder) stopped(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return fmt.Errorf("recorder: before record %d: %w", r.reached, err)
	}
	return nil
}

// projected is a position up to which everything surely is projected: a batch
// before the newest order in the search index, which is written last of its batch.
func (r *Recorder) projected(ctx context.Context) (int64, error) {
	var newest int64
	tenants := r.Tenants
	if tenants == nil {
		tenants = func() []string { return r.readTenants(ctx) }
	}
	for _, tenant := range tenants() {
		page, err := r.newest(ctx, tenant)
		if err != nil {
			return 0, err
		}
		if len(page.Documents) > 0 {
			newest = max(newest, page.Documents[0].Position)
		}
	}
	return max(0, newest-maxBatch), nil
}

// newest order of a tenant in the index. The error is ctx's.
func (r *Recorder) newest(ctx context.Context, tenant string) (storage.Page, error) {
	for {
		page, err := r.documents.Search(ctx, tenant, storage.IndexOrders, storage.Query{Sort: "-position", Limit: 1})
		if err == nil {
			return page, nil
		}
		if err := r.pause(ctx, storage.IndexOrders, err); err != nil {
			return page, err
		}
	}
}

// readTenants makes the fold of the whole journal, without writing, to know which
// tenants there are.
func (r *Recorder) readTenants(ctx context.Context) []string {
	fold := state.New()
	for rec, err := range r.records.Scan(ctx, 0) {
		if err != nil {
			return nil
		}
		fold.Observe(state.EntryOf(rec))
	}
	return fold.Tenants()
}

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
		s, out, err = r.ended(ctx, rec)
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
	after, err := r.told(ctx, s.Tenant, planID(s))
	if err != nil {
		return err
	}
	switch rec.Kind {
	case storage.KindOrder:
		if err := r.writeEvents(r.ofApproval(s), orderEvents(s, before, after), rec); err != nil {
			return err
		}
		if err := r.writePlan(after, rec); err != nil {
			return err
		}
		for _, id := range ends {
			if err := r.writePlanOf(ctx, tenant, id, rec); err != nil {
				return err
			}
		}
		if s.Decision.Verdict == intents.Allow {
			if err := r.erased(ctx, s, rec); err != nil {
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
		if err := r.writeCall(s, out, rec); err != nil {
			return err
		}
		return r.writePlan(after, rec)
	default:
		return nil
	}
}

// ended is an outcome with the order that it ends.
func (r *Recorder) ended(ctx context.Context, rec storage.Record) (s state.Order, out intents.Outcome, err error) {
	out, of, err := state.OutcomeOf(rec)
	if err != nil {
		return s, out, err
	}
	order, err := r.records.Get(ctx, of)
	if err != nil {
		return s, out, err
	}
	s, err = state.ReadOrder(order)
	return s, out, err
}

// patiently writes: a store that is down is tried again until ctx ends.
func (r *Recorder) patiently(ctx context.Context, index string, write func() error) error {
	for {
		err := write()
		var schema *storage.SchemaError
		if err == nil || errors.As(err, &schema) {
			return err
		}
		if err := r.pause(ctx, index, err); err != nil {
			return err
		}
	}
}

// pause leaves a store that is down alone for a while. The error is ctx's.
func (r *Recorder) pause(ctx context.Context, index string, cause error) error {
	if ctx.Err() == nil {
		r.log.WarnContext(ctx, "projection waits for its store", slog.String("index", index), slog.String("error", cause.Error()))
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(retryAfter):
		return nil
	}
}

func marshal(v any) (json.RawMessage, error) { return json.Marshal(v) }
