package router

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/clock"
	"aob.dev/writ/internal/failpoint"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
)

// Bounds of the attempts at an idempotent intent: three, and none after two routers in a row ended
// while it was open, since it may be the cause.
const (
	maxAttempts = 3
	maxLost     = 2
)

// listenerPause is the pause between checks whether an executor listens.
const listenerPause = 200 * time.Millisecond

// Recover ends the intents that an earlier router left open, which Start has listed. The data
// directory's lock, or the term, proves that it writes nothing more. First it asks an executor that may
// have outlived the router: it may run the intent still, or have its report. What is unknown ends by its effect: pure is
// abandoned and may be sent again; idempotent is dispatched again; once is indeterminate and never
// retried by itself.
//
// In a log that lacks erasures it ends the open intents that were erased, and the others once these
// erasures are signed (Unexplained).
//
// It runs concurrently with new intents and delays none of them; a resubmitted intent that is still
// open gets IN_FLIGHT. It returns when all have their outcome, or when ctx has ended and dispatched
// intents have reported. An intent that cannot be ended is logged and stays open.
//
// Crash: intents that have not ended are still open, and the next start continues.
func (r *Router) Recover(ctx context.Context) error {
	var dispatched sync.WaitGroup
	defer dispatched.Wait()
	r.left = slices.DeleteFunc(r.left, func(x storage.OpenIntent) bool { return r.endUnexplained(ctx, x) })
	r.untilExplained(ctx)
	batches := make(map[int64]bool)
	for _, x := range r.left {
		if ctx.Err() != nil {
			return nil
		}
		open, err := r.resume(ctx, x, batches)
		if err != nil {
			r.notRecovered(ctx, x, err)
		}
		if open == nil {
			continue
		}
		end := func() {
			again, err := r.endOpen(ctx, open, x)
			if err != nil {
				r.notRecovered(ctx, x, err)
			}
			if again {
				r.metrics.recovered.Add(1)
				dispatched.Go(func() { r.redispatch(ctx, open) })
			}
		}
		if r.outlived(open) {
			dispatched.Go(end)
		} else {
			end()
		}
	}
	return nil
}

// outlived reports whether the executor of an intent may have outlived the router that dispatched
// it. On a node only those of other programs may: the others ended with its process.
func (r *Router) outlived(x *execution) bool { return r.cfg.Term != nil || x.row.Vendor() }

// endOpen ends an intent that was left open: by its executor's report, or by its effect if the
// executor knows nothing of it; again: it is to be dispatched. If ctx ends meanwhile, it stays open.
func (r *Router) endOpen(ctx context.Context, x *execution, left storage.OpenIntent) (again bool, err error) {
	if r.outlived(x) {
		raw, known := r.keptReport(ctx, x, x.row.Start(), r.unknownReplies())
		switch {
		case ctx.Err() != nil:
			return false, nil //nolint:nilerr // it stays open
		case known:
			var report intents.Report
			err := readReport(raw, &report)
			out := intents.Outcome{Target: left.Position, Attempt: left.Attempt}
			r.finishAtLast(ctx, x, r.outcomeOf(ctx, x, out, report, err))
			failpoint.Hit(failpoint.RecoveryEnded)
			return false, nil
		}
	}
	return r.byEffect(ctx, x, left)
}

func (r *Router) notRecovered(ctx context.Context, x storage.OpenIntent, err error) {
	r.cfg.Log.ErrorContext(ctx, "an intent that was left open cannot be ended: it stays open until the next start", slog.Int64("position", x.Position), slog.String("error", err.Error()))
}

// redispatch has an intent executed again, under the attempt that resume began. After a crash of
// the machine its executor may come back later than the router, so redispatch waits for it as long
// as a dispatched intent does, counted from when the router was ready. If no executor comes, the effect
// of the earlier attempts is unknown.
//
// If ctx ends while it waits, it leaves the intent open for the next start.
func (r *Router) redispatch(ctx context.Context, x *execution) {
	until := time.Now().Add(x.row.Start())
	out, heard := r.dispatch(clock.Lasting(ctx), x)
	for !heard && time.Now().Before(until) {
		if clock.Sleep(ctx, listenerPause) != nil {
			return
		}
		out, heard = r.dispatch(clock.Lasting(ctx), x)
	}
	r.finishAtLast(ctx, x, out)
	failpoint.Hit(failpoint.RecoveryEnded)
}

// resume continues an accepted intent after a crash. Signature, grant and task are verified as of
// the intent's own position, and expiry is not checked again; an intent whose signer, user or grant
// has been revoked since is indeterminate. A returned intent is still open; all others have their
// outcome. seen holds the batches of recovered intents.
func (r *Router) resume(ctx context.Context, left storage.OpenIntent, seen map[int64]bool) (*execution, error) {
	if stopped, err := r.stoppedBatch(ctx, left, seen); stopped || err != nil {
		return nil, err
	}
	x, err := r.reopen(ctx, left)
	if err != nil {
		var refusal *intents.Refusal
		if !errors.As(err, &refusal) {
			return nil, err
		}
		r.finishAtLast(ctx, x, intents.Outcome{
			Target: left.Position, Attempt: left.Attempt, Status: intents.StatusIndetermined,
			Code: intents.Indeterminate, Reason: "the signer or its grant was revoked: " + refusal.Reason,
		})
		return nil, nil
	}
	return x, nil
}

// byEffect ends an intent of which its executor knows nothing. again: another attempt has begun, and
// it is to be dispatched.
func (r *Router) byEffect(ctx context.Context, x *execution, left storage.OpenIntent) (again bool, err error) {
	out := intents.Outcome{Target: left.Position, Attempt: left.Attempt}
	switch catalog.Effect(x.Effect) {
	case catalog.Pure:
		out.Status, out.Code, out.Retryable = intents.Failed, intents.Abandoned, true
		out.Reason = "a crash ended it; it has no effect and may be sent again"
	case catalog.Idempotent:
		if why := r.hopeless(x, left); why != "" {
			out.Status, out.Code, out.Reason = intents.StatusIndetermined, intents.Indeterminate, why
			break
		}
		if x.attempt, err = r.take(ctx, x); err != nil {
			return false, err
		}
		failpoint.Hit(failpoint.RecoveryTaken)
		return true, nil
	default:
		out.Status, out.Code = intents.StatusIndetermined, intents.Indeterminate
		out.Reason = "a crash came between dispatch and outcome: an operator must look"
	}
	r.finishAtLast(ctx, x, out)
	failpoint.Hit(failpoint.RecoveryEnded)
	return false, nil
}

// hopeless returns why an idempotent intent is not tried again; empty: it is.
func (r *Router) hopeless(x *execution, left storage.OpenIntent) string {
	switch {
	case left.Attempt >= maxAttempts:
		return "no outcome after three attempts"
	case r.cfg.Crashed && x.view.UncleanEnds(left.Position)+1 >= maxLost:
		return "the router crashed twice while it was open: an operator must look"
	}
	return ""
}

// take begins another attempt, as soon as there is room to record it.
func (r *Router) take(ctx context.Context, x *execution) (attempt int, err error) {
	rec, err := storage.RecordOf(storage.KindTakeover, r.cfg.Now(), state.Takeover{Target: x.position, Crashed: r.cfg.Crashed})
	if err != nil {
		return 0, err
	}
	for attempt, err = r.cfg.Journal.Take(ctx, x.position, rec); errors.Is(err, storage.ErrFull); attempt, err = r.cfg.Journal.Take(ctx, x.position, rec) {
		if ended := clock.Sleep(ctx, maxFinishPause); ended != nil {
			return 0, ended
		}
	}
	return attempt, err
}

// reopen reads an accepted intent back from its record. If the error is a refusal, it also returns
// as much of the intent as it could read.
func (r *Router) reopen(ctx context.Context, left storage.OpenIntent) (*execution, error) {
	return r.reopenIn(ctx, r.state.View(), left)
}

// reopenIn is reopen for a decision that reads from a view.
func (r *Router) reopenIn(ctx context.Context, v *state.View, left storage.OpenIntent) (*execution, error) {
	rec, err := r.cfg.Records.Get(ctx, left.Position)
	if err != nil {
		return nil, err
	}
	x := &execution{decision: decision{view: v, now: rec.At}, position: left.Position, attempt: left.Attempt, record: &recordedRef{record: rec.Digest()}}
	var signed intents.Signed
	if x.Decision, err = decisionOf(rec); err != nil {
		return nil, err
	}
	if err := errors.Join(
		json.Unmarshal(rec.Parts[storage.PartInputs], &x.inputs),
		json.Unmarshal(rec.Parts[storage.PartEnvelope], &signed),
	); err != nil {
		return nil, err
	}
	if err := r.asReleased(ctx, x); err != nil {
		return nil, err
	}
	u, err := signed.Open()
	if err != nil {
		return nil, err
	}
	env, err := u.Verify(intents.Verifier{Keys: x.view, Origin: r.state.Origin()})
	if err != nil {
		// The record's own bytes name the intent even when its key is gone.
		x.env = u.AsRecorded()
		return x, err
	}
	x.env = env
	if err := revoked(env, x.view); err != nil {
		return x, err
	}
	row, ok := r.cfg.Catalog.Lookup(env.Type())
	if !ok {
		return x, intents.Refuse(intents.UnknownIntent, "/intent/type", "the type has left the catalog")
	}
	x.row, x.roles = row, x.inputs.Roles
	if env.Signer().Role == intents.RoleTask {
		if t, ok := x.view.Task(env.Signer().Task); ok {
			x.task = &t
		}
	}
	if s := x.inputs.Skill; s != nil {
		x.pin = &intents.Pin{Skill: s.Name, Digest: s.Digest, Effect: s.Effect, Destructive: s.Destructive, Kind: s.Kind, Trusted: s.Trusted, OpenWorld: s.OpenWorld}
		if x.task != nil && x.task.Remote != nil && x.task.Remote.Skill == s.Name {
			x.pin = x.task.Remote // with the endpoint
		}
	}
	return x, nil
}

// asReleased replaces the decision made when the intent was held with the one made at its release.
func (r *Router) asReleased(ctx context.Context, x *execution) error {
	at, ok := x.view.ReleasedAt(x.position)
	if !ok {
		return nil
	}
	rec, err := r.cfg.Records.Get(ctx, at)
	if err != nil {
		return err
	}
	rel, err := state.ReleaseOf(rec)
	x.Decision, x.inputs, x.release = rel.Decision, rel.Inputs, &release{position: x.position}
	return err
}
