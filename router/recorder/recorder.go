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
	"runtime/debug"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
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
	aside     aside
	recent    [64]recent // by position

	*storage.Progress // of the records that are projected
}

// New begins with the first record; Run does the work.
func New(records storage.Records, documents storage.Documents, log *slog.Logger) *Recorder {
	return &Recorder{
		Content: func(context.Context, string) ([]byte, error) { return nil, storage.ErrNotFound },
		records: records, documents: documents, log: log, fold: state.New(), batch: newBatch(), aside: aside{at: map[int64]bool{}},
		Progress: storage.NewProgress(),
	}
}

// retryAfter is how long a store that refuses is left alone.
const retryAfter = time.Second

// Run projects records until ctx ends. A store that is down is tried again. A record of which
// something cannot be projected is set aside: the rest of it is projected, and so are the
// records behind it. The error is that of a journal that cannot be read.
func (r *Recorder) Run(ctx context.Context) error {
	skip, err := r.Projected(ctx)
	if err == nil {
		err = r.readAside(ctx)
	}
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
				return r.stopped(ctx, err)
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

// about is what a record is or ends, and the plan of that before the record.
type about struct {
	order   state.Order
	outcome intents.Outcome
	before  *catalog.PlanView
	tenant  string   // of the plans that end with it
	ends    []string // their ids
}

// observe folds one record and, if write is set, gathers what follows from it. The error is
// that of a journal that cannot be read, or that ctx has ended.
func (r *Recorder) observe(ctx context.Context, rec storage.Record, write bool) error {
	var of about
	var faults []error
	try := func(project func() error) error {
		err := guarded(project)
		if err == nil || errors.As(err, new(*unreadError)) || ctx.Err() != nil {
			return err
		}
		faults = append(faults, err)
		return nil
	}
	if write {
		if err := try(func() (err error) { of, err = r.about(ctx, rec); return err }); err != nil {
			return err
		}
	}
	known := len(faults) == 0
	r.fold.Observe(state.EntryOf(rec))
	if err := r.fold.Fault(rec.Position); err != nil {
		faults = append(faults, err)
	}
	if write && known {
		var parts []func() error
		projecting := func() (err error) { parts, err = r.projecting(ctx, of, rec); return err }
		if err := try(projecting); err != nil {
			return err
		}
		for _, project := range parts {
			if err := try(project); err != nil {
				return err
			}
		}
	}
	switch {
	case len(faults) > 0:
		return r.setAside(ctx, rec.Position, errors.Join(faults...))
	case write:
		return r.takeBack(ctx, rec.Position)
	}
	return nil
}

// guarded has a panic end as an error: no record ends the process.
func guarded(project func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return project()
}

// about reads what a record is about, on the state before it.
func (r *Recorder) about(ctx context.Context, rec storage.Record) (of about, err error) {
	switch rec.Kind { //nolint:exhaustive // others are about no order, or look for it themselves
	case storage.KindOrder:
		if of.order, err = state.ReadOrder(rec); err == nil {
			r.recent[rec.Position%int64(len(r.recent))] = recent{true, rec.Position, of.order}
		}
	case storage.KindOutcome:
		var at int64
		if of.outcome, at, err = state.OutcomeOf(rec); err == nil {
			of.order, err = r.order(ctx, at)
		}
	}
	if err != nil {
		return of, err
	}
	of.before = r.plan(of.order)
	of.tenant, of.ends = r.fold.EndedWith(of.order)
	return of, nil
}

// projecting are the parts of what follows from a record that was folded. None needs another;
// of a plan whose texts are lost the error says so, and the parts are without it.
func (r *Recorder) projecting(ctx context.Context, of about, rec storage.Record) (list []func() error, err error) {
	s, out := of.order, of.outcome
	after, err := r.told(ctx, s.Tenant, r.planID(s))
	switch rec.Kind { //nolint:exhaustive // nothing follows from others
	case storage.KindOrder:
		where := r.ofApproval(s)
		list = append(list,
			func() error { return r.writeEvents(where, orderEvents(where, of.before, after), rec) },
			func() error { r.writePlan(after, rec); return nil },
			func() error { return r.writeTool(s, rec) },
		)
		for _, id := range of.ends {
			list = append(list, func() error { return r.writePlanOf(ctx, of.tenant, id, rec) })
		}
		if s.Decision.Verdict == intents.Allow {
			list = append(list, func() error { return r.erased(ctx, s, rec) }, func() error { return r.writeAgents(ctx, s, rec) })
		}
		list = append(list, func() error { return r.writeIndex(s) })
	case storage.KindRelease:
		list = append(list, func() error { return r.released(ctx, rec) })
	case storage.KindOutcome:
		list = append(list,
			func() error { return r.writeEvents(s, outcomeEvents(s, out, of.before, after), rec) },
			func() error { return r.writeCall(s, out, rec) },
			func() error { return r.writeToolOutcome(s, out, rec) },
			func() error { return r.writeLines(s, out, after, rec) },
			func() error { r.writePlan(after, rec); return nil },
		)
	}
	return list, err
}

// unreadError is of a journal that cannot be read: nothing follows from it for a record.
type unreadError struct{ error }

func (e *unreadError) Unwrap() error { return e.error }

// recent is an order that was just read: its outcome mostly comes soon.
type recent struct {
	read     bool
	position int64
	order    state.Order
}

// order reads the order at a position.
func (r *Recorder) order(ctx context.Context, position int64) (state.Order, error) {
	if has := r.recent[position%int64(len(r.recent))]; has.read && has.position == position {
		return has.order, nil
	}
	rec, err := r.records.Get(ctx, position)
	if err != nil {
		if errors.Is(err, storage.ErrNotFound) {
			return state.Order{}, fmt.Errorf("record %d: %w", position, err)
		}
		return state.Order{}, &unreadError{err}
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
