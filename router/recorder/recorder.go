// Package recorder follows the journal and writes what can be made from it: the documents of
// agent_plans, the events of agent_events, the calls of agent_skill_calls and the search index of
// intents. Nothing else writes these, and all can be dropped and rebuilt with the same content. It
// also writes the rows of tools in agent_messages, beside those of turns.
package recorder

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"aob.dev/writ/bus"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/clock"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
)

// Recorder applies the journal to projections, in order and once: every write is fenced by the
// position or create-only, so that after a crash it repeats the last records and changes nothing.
// Its outage delays reads, never intents.
type Recorder struct {
	// Tenants whose intents the documents may have, as the router's directory knows them: read
	// once, when Run begins. Nil: everything is projected again.
	Tenants func() []string
	// From is the state after some of the records, to begin with if the documents have all of
	// these. The recorder owns it from now on. Nil: all records are read.
	From *state.State
	// Content reads a blob of tenant system: agents that are not part of an intent.
	Content func(ctx context.Context, digest string) ([]byte, error)
	// RemovedBefore is the time before which a retention may have removed a tenant's documents of an
	// index: they are not written again, when old records are replayed or the recorder is late. Nil:
	// nothing is removed.
	RemovedBefore func(tenant, index string) time.Time
	// Publish is given written events, in order, and must not block. After a crash it is given
	// those of the last records again. Nil: events are not published.
	Publish func([]bus.Event)

	records     storage.Records
	documents   storage.Documents
	log         *slog.Logger
	state       *state.State // its own: a plan's document is the plan as of each record; see planView
	batch       *batch       // gathered and not written; of Run's goroutine
	unprojected sync.Map     // positions of the records of which something could not be projected
	recent      [64]recent   // by position
	residue     bool         // documents have lost words that the store's files may retain

	*storage.Progress // of the records that are projected
}

// New begins with the first record; Run does the work.
func New(records storage.Records, documents storage.Documents, log *slog.Logger) *Recorder {
	return &Recorder{
		Content: func(context.Context, string) ([]byte, error) { return nil, storage.ErrNotFound },
		records: records, documents: documents, log: log, state: state.New(), batch: newBatch(),
		Progress: storage.NewProgress(),
	}
}

// retryAfter is the pause after a store refuses.
const retryAfter = time.Second

// lastTime bounds how long a store that is down delays the end of RunToEnd.
const lastTime = time.Second

// RunToEnd is Run, but once ctx has ended it first writes what was committed; nobody commits any
// more then. next is the position after the last record.
func (r *Recorder) RunToEnd(ctx context.Context, next func() int64) error {
	lasting, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	stop := context.AfterFunc(ctx, func() {
		defer end()
		last, cancel := context.WithTimeout(lasting, lastTime)
		defer cancel()
		_ = r.Reach(last, next()) // the next start continues where it ends
	})
	defer stop()
	return r.Run(lasting)
}

// Run projects records until ctx ends. A store that is down is tried again. A record of which
// something cannot be projected is set aside: the rest of it is projected, and so are the records
// after it. The error is that of a journal that cannot be read.
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
		r.state, next = r.From, r.From.Next()
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

// stopped is the error that ends Run, unless it is that ctx has ended.
func (r *Recorder) stopped(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return fmt.Errorf("recorder: before record %d: %w", r.Reached(), err)
	}
	return nil
}

// Projected is a position up to which everything is certainly projected: a batch before the newest
// intent in the search index, which is written last of its batch. The only error is that ctx has
// ended.
func (r *Recorder) Projected(ctx context.Context) (position int64, err error) {
	if r.Tenants == nil {
		return 0, nil
	}
	for _, tenant := range r.Tenants() {
		err := r.patiently(ctx, storage.IndexIntents, func() error {
			page, err := r.documents.Search(ctx, tenant, storage.IndexIntents, storage.Query{Sort: "-position", Limit: 1})
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

// State is the recorder's state after the records that it has read, once Run has ended.
func (r *Recorder) State() *state.State { return r.state }

// about is the intent that a record contains or ends, and its plan before the record.
type about struct {
	intent  state.Intent
	outcome intents.Outcome
	before  *catalog.PlanView
	tenant  string   // of the plans that end with it
	ends    []string // their ids
}

// observe applies one record and, if write is set, gathers what follows from it. The error is that
// of a journal that cannot be read, or that ctx has ended.
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
	var read *state.Intent
	if write && known && rec.Kind == storage.KindIntent {
		read = &of.intent
	}
	r.state.ObserveRead(state.EntryOf(rec), read)
	if err := r.state.Fault(rec.Position); err != nil {
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

// guarded turns a panic into an error: no record ends the process.
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
	switch rec.Kind { //nolint:exhaustive // others are about no intent, or look for it themselves
	case storage.KindIntent:
		if of.intent, err = state.ReadIntent(rec); err == nil {
			r.recent[rec.Position%int64(len(r.recent))] = recent{true, rec.Position, of.intent}
		}
	case storage.KindOutcome:
		var at int64
		if of.outcome, at, err = state.OutcomeOf(rec); err == nil {
			of.intent, err = r.intent(ctx, at)
		}
	}
	if err != nil {
		return of, err
	}
	of.before = r.plan(of.intent)
	of.tenant, of.ends = r.state.EndedWith(of.intent)
	return of, nil
}

// projecting returns the independent parts of what follows from an applied record. If the texts of
// a plan are lost the error says so, and the parts are without them.
func (r *Recorder) projecting(ctx context.Context, of about, rec storage.Record) (list []func() error, err error) {
	s, out := of.intent, of.outcome
	after, err := r.planView(ctx, s.Tenant, r.planID(s))
	switch rec.Kind { //nolint:exhaustive // nothing follows from others
	case storage.KindIntent:
		where, held := r.ofApproval(s)
		list = append(list,
			func() error { return r.writeEvents(where, intentEvents(where, of.before, after), rec) },
			func() error { r.writePlan(after, rec); return nil },
			func() error { return r.writeTool(s, rec) },
		)
		for _, id := range of.ends {
			list = append(list, func() error { return r.writePlanOf(ctx, of.tenant, id, rec) })
		}
		if s.Decision.Verdict == intents.Allow {
			list = append(list, func() error { return r.erased(ctx, s, rec) }, func() error { return r.writeAgents(ctx, s, rec) })
		}
		list = append(list, func() error { return r.writeIndex(s, held) })
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

// unreadError says that the journal cannot be read: nothing follows from it for a record.
type unreadError struct{ error }

func (e *unreadError) Unwrap() error { return e.error }

// recent is an intent that was just read: its outcome mostly comes soon.
type recent struct {
	read     bool
	position int64
	intent   state.Intent
}

// intent reads the intent at a position.
func (r *Recorder) intent(ctx context.Context, position int64) (state.Intent, error) {
	if has := r.recent[position%int64(len(r.recent))]; has.read && has.position == position {
		return has.intent, nil
	}
	rec, err := r.records.Get(ctx, position)
	if err != nil {
		if errors.Is(err, storage.ErrNotFound) {
			return state.Intent{}, fmt.Errorf("record %d: %w", position, err)
		}
		return state.Intent{}, &unreadError{err}
	}
	return state.ReadIntent(rec)
}

// patiently calls a store. One that is down is tried again until ctx ends.
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

// remove removes a document, if it is there.
func (r *Recorder) remove(ctx context.Context, tenant, index, id string) error {
	return r.patiently(ctx, index, func() error { return r.documents.Delete(ctx, tenant, index, id) })
}
