package router

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"log/slog"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
)

// ending is the outcome of a held intent that is not executed, with what its author should do
// instead; nil: only the reason. It is final: further work needs another intent,
// unless only a skill server was not there.
func ending(w state.Hold, x *intents.Refusal, instead any, now time.Time) (storage.Entry, error) {
	out := intents.Outcome{Target: w.Position, Attempt: 1, Status: intents.Failed, Code: x.Code, Reason: x.Reason, Retryable: x.Code == intents.DispatchUnavailable}
	if instead == nil {
		rec, err := storage.RecordOf(storage.KindOutcome, now, out)
		return storage.Entry{Record: rec, Target: w.Position, Holder: storage.NoPosition, Writes: w.Writes()}, err
	}
	var err error
	if out.Result, err = json.Marshal(instead); err != nil {
		return storage.Entry{}, err
	}
	rec, err := storage.OutcomeRecord(now, out) // the result can be erased
	return storage.Entry{Record: rec, Target: w.Position, Holder: storage.NoPosition, Writes: w.Writes()}, err
}

// endings are the outcomes of held intents that an intent of the router ends: those of a plan that
// ends, or of a step that a revision drops.
func (d *decision) endings() ([]storage.Entry, error) {
	held := d.view.EndedHolds(d.intent())
	var out []storage.Entry
	for _, w := range held {
		if d.release != nil && w.Position == d.release.position {
			continue // it was held itself, and is what ends them
		}
		e, err := ending(w, intents.Refuse(intents.Cancelled, "", "its plan has ended, or its step was dropped"), nil, d.now)
		if err != nil {
			return nil, err
		}
		out = append(out, e)
	}
	return out, nil
}

// expiryPace is how often holds are checked for expired deadlines.
const expiryPace = time.Second

// WatchHolds ends holds whose deadline passes, and releases those whose conditions are met, until
// ctx ends. Then it waits for released intents that are being executed.
func (r *Router) WatchHolds(ctx context.Context) error {
	defer r.running.Wait()
	tick := time.NewTicker(expiryPace)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			r.eraseInBackground(ctx)
			if err := errors.Join(r.ExpireHolds(ctx), r.ReleaseReady(ctx)); err != nil && ctx.Err() == nil {
				r.cfg.Log.WarnContext(ctx, "holds that are over stay", slog.String("error", err.Error()))
			}
		}
	}
}

// ExpireHolds ends every hold that is past its deadline. A hold that another call ends or releases
// at the same time is skipped.
func (r *Router) ExpireHolds(ctx context.Context) error {
	now := r.now()
	if _, blocked := r.blocked(); blocked {
		return nil // the clock may be wrong
	}
	for _, w := range r.state.View().ExpiredHolds(now) {
		v := r.state.View()
		if _, still := v.Hold(w.Tenant, w.Decision.IntentID); !still {
			continue
		}
		e, err := ending(w, intents.Refuse(intents.ApprovalExpired, "", "what it waited for did not come in time"), nil, now)
		if err != nil {
			return err
		}
		c := storage.Commit{ID: rand.Text(), AsOf: v.AsOf(), Asserts: v.Asserts(), Entries: []storage.Entry{e}}
		if _, err := r.cfg.Journal.Commit(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

// DefaultUserHolds and DefaultTenantHolds bound how many approvals may be pending at once: more
// would expire before anybody reads them.
const (
	DefaultUserHolds   = 20
	DefaultTenantHolds = 200
)

// mayHold bounds the holds of a user and of a tenant. Concurrent decisions may exceed the bound by
// their number.
func (r *Router) mayHold(env *intents.Envelope) error {
	pr := env.Principal()
	user, tenant := r.state.HeldOf(pr.Tenant, pr.UserID)
	if below(user, r.cfg.UserHolds) && below(tenant, r.cfg.TenantHolds) {
		return nil
	}
	x := intents.Refuse(intents.Overloaded, "", "too many intents of this user or tenant wait for approval")
	x.RetryAfter = holdRetry
	return x
}

// below reports whether n is below a bound; a negative bound is none.
func below(n, bound int) bool { return bound < 0 || n < bound }

// holdRetry is when to try again if too many approvals are pending.
const holdRetry = time.Minute
