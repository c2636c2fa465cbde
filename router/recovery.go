package router

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/clock"
	"aob.dev/writ/internal/failpoint"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
)

// Bounds of the attempts at an idempotent order: three, and none after two
// routers in a row ended while it was open, since it may be what ended them.
const (
	maxAttempts = 3
	maxLost     = 2
)

// listenerPause is how often an executor that does not listen yet is asked for.
const listenerPause = 200 * time.Millisecond

// Recover ends the orders that an earlier process left open, which Start has
// listed. The data directory's lock proves it dead. Beside other routers it ends, as long as it
// runs, what those leave that die (Peers). By effect: pure is abandoned and
// may be sent again; idempotent is dispatched again; once is indeterminate and never
// retried by itself.
//
// It runs beside the taking of new orders and holds none of them up; who sends one
// again that is still open gets IN_FLIGHT. It returns when all have their outcome,
// or when ctx has ended and what was dispatched is reported. An order that cannot be
// ended is logged and stays open.
//
// Crash in it: what is not ended yet is still open, and the next start goes on.
func (r *Router) Recover(ctx context.Context) error {
	if r.cfg.Peers != nil {
		return r.recoverLost(ctx)
	}
	var dispatched sync.WaitGroup
	defer dispatched.Wait()
	r.recoverLeft(ctx, &dispatched)
	return nil
}

// recoverLeft ends what is left; what is dispatched again goes on.
func (r *Router) recoverLeft(ctx context.Context, dispatched *sync.WaitGroup) {
	batches := make(map[int64]bool)
	for _, x := range r.left {
		if ctx.Err() != nil {
			return
		}
		o, err := r.resume(ctx, x, batches)
		if err != nil {
			r.notRecovered(ctx, x, err)
		}
		if o != nil {
			r.metrics.recovered.Add(1)
			dispatched.Go(func() { r.redispatch(ctx, o) })
		}
	}
}

func (r *Router) notRecovered(ctx context.Context, x storage.OpenOrder, err error) {
	r.cfg.Log.ErrorContext(ctx, "an order that was left open cannot be ended: it stays open until the next start", slog.Int64("position", x.Position), slog.String("error", err.Error()))
}

// redispatch has an order carried out again, under the attempt that it was taken up
// with. After a crash of the machine its executor may come back later than the router:
// it is waited for as long as the order may run, counted from when the router was
// ready. Where none has come, nobody knows what the attempts before have done.
//
// If ctx ends while it waits, it leaves the order open for the next start.
func (r *Router) redispatch(ctx context.Context, o *order) {
	until := time.Now().Add(o.row.Run())
	out := r.dispatch(clock.Lasting(ctx), o)
	for o.unheard && time.Now().Before(until) {
		if clock.Sleep(ctx, listenerPause) != nil {
			return
		}
		out = r.dispatch(clock.Lasting(ctx), o)
	}
	r.finishAtLast(ctx, o, out)
	failpoint.Hit(failpoint.RecoveryEnded)
}

// resume carries an accepted order on after a crash. Signature, grant and task
// are verified as of the order's own position, and expiry is not asked again;
// an order whose signer, user or grant has been revoked since is indeterminate. An
// order that it returns is taken up, and to be dispatched again; all others have
// their outcome. seen are the batches that orders were recovered of.
func (r *Router) resume(ctx context.Context, x storage.OpenOrder, seen map[int64]bool) (*order, error) {
	if stopped, err := r.stoppedBatch(ctx, x, seen); stopped || err != nil {
		return nil, err
	}
	o, err := r.reopen(ctx, x)
	if o != nil && o.facts.Breaker == intents.BreakerRefuses {
		r.finishAtLast(ctx, o, r.unsent(o))
		return nil, nil
	}
	if err != nil {
		var refusal *intents.Refusal
		if !errors.As(err, &refusal) {
			return nil, err
		}
		r.finishAtLast(ctx, o, intents.Outcome{
			Of: x.Position, Attempt: x.Attempt, Status: intents.StatusIndetermined,
			Code: intents.Indeterminate, Reason: "the signer or its grant was revoked: " + refusal.Reason,
		})
		return nil, nil
	}
	out := intents.Outcome{Of: x.Position, Attempt: x.Attempt}
	switch catalog.Effect(o.decision.Effect) {
	case catalog.Pure:
		out.Status, out.Code, out.Retryable = intents.Failed, intents.Abandoned, true
		out.Reason = "a crash ended it; it has no effect and may be sent again"
	case catalog.Idempotent:
		if why := r.hopeless(o, x); why != "" {
			out.Status, out.Code, out.Reason = intents.StatusIndetermined, intents.Indeterminate, why
			break
		}
		if o.attempt, err = r.take(ctx, o); err != nil {
			return nil, err
		}
		failpoint.Hit(failpoint.RecoveryTaken)
		return o, nil
	default:
		out.Status, out.Code = intents.StatusIndetermined, intents.Indeterminate
		out.Reason = "a crash came between dispatch and outcome: an operator must look"
	}
	r.finishAtLast(ctx, o, out)
	failpoint.Hit(failpoint.RecoveryEnded)
	return nil, nil
}

// hopeless says why an idempotent order is not tried again; empty: it is.
func (r *Router) hopeless(o *order, x storage.OpenOrder) string {
	switch {
	case x.Attempt >= maxAttempts:
		return "no outcome after three attempts"
	case r.cfg.Crashed && o.view.Lost(x.Position)+1 >= maxLost:
		return "the router crashed twice while it was open: an operator must look"
	}
	return ""
}

// take begins another attempt, as soon as there is room to say so.
func (r *Router) take(ctx context.Context, o *order) (attempt int, err error) {
	rec, err := storage.RecordOf(storage.KindTakeover, r.cfg.Now(), state.Takeover{Of: o.position, Crashed: r.cfg.Crashed})
	if err != nil {
		return 0, err
	}
	for attempt, err = r.cfg.Journal.Take(ctx, o.position, rec); errors.Is(err, storage.ErrFull); attempt, err = r.cfg.Journal.Take(ctx, o.position, rec) {
		if ended := clock.Sleep(ctx, maxFinishPause); ended != nil {
			return 0, ended
		}
	}
	return attempt, err
}

// reopen reads an accepted order back from its record. The order is returned
// with a refusal too, as far as it goes.
func (r *Router) reopen(ctx context.Context, x storage.OpenOrder) (*order, error) {
	return r.reopenIn(ctx, r.state.View(), x)
}

// reopenIn is reopen for a decision that rests on what a view sees.
func (r *Router) reopenIn(ctx context.Context, v *state.View, x storage.OpenOrder) (*order, error) {
	rec, err := r.cfg.Records.Get(ctx, x.Position)
	if err != nil {
		return nil, err
	}
	o := &order{view: v, now: rec.At, position: x.Position, attempt: x.Attempt, record: recordedRef{record: rec.Digest()}}
	var sealed intents.Sealed
	if o.decision, err = decisionOf(rec); err != nil {
		return nil, err
	}
	if err := errors.Join(
		json.Unmarshal(rec.Parts[storage.PartFacts], &o.facts),
		json.Unmarshal(rec.Parts[storage.PartOrder], &sealed),
	); err != nil {
		return nil, err
	}
	if err := r.asReleased(ctx, o); err != nil {
		return nil, err
	}
	u, err := sealed.Open()
	if err != nil {
		return nil, err
	}
	env, err := u.Verify(intents.Verifier{Keys: o.view, Origin: r.state.Origin()})
	if err != nil {
		// The record's own bytes name the order even when its key is gone.
		o.env = u.Recorded()
		return o, err
	}
	o.env = env
	if err := revoked(env, o.view); err != nil {
		return o, err
	}
	row, ok := r.cfg.Catalog.Lookup(env.Type())
	if !ok {
		return o, intents.Refuse(intents.UnknownIntent, "/intent/type", "the type has left the catalog")
	}
	o.row, o.roles = row, o.facts.Roles
	if env.Signer().Role == intents.RoleTask {
		if t, ok := o.view.Task(env.Signer().Task); ok {
			o.task = &t
		}
	}
	if s := o.facts.Skill; s != nil {
		o.pin = &intents.Pin{Skill: s.Name, Digest: s.Digest, Effect: s.Effect, Destructive: s.Destructive, Kind: s.Kind}
		if o.task != nil && o.task.Remote != nil && o.task.Remote.Skill == s.Name {
			o.pin = o.task.Remote // with the endpoint
		}
	}
	return o, nil
}

// asReleased puts what was decided at the release of a held order in the place
// of what was decided when it was held.
func (r *Router) asReleased(ctx context.Context, o *order) error {
	at, ok := o.view.ReleasedAt(o.position)
	if !ok {
		return nil
	}
	rec, err := r.cfg.Records.Get(ctx, at)
	if err != nil {
		return err
	}
	rel, err := state.ReleaseOf(rec)
	o.decision, o.facts, o.released = rel.Decision, rel.Facts, true
	return err
}
