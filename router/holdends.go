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

// ending is the outcome of a held order that is not carried out, with what its author is told;
// nil: no more than the reason. It is final: what is wanted after it is another order.
func ending(w state.Hold, x *intents.Refusal, instead any, now time.Time) (storage.Entry, error) {
	out := intents.Outcome{Of: w.Position, Attempt: 1, Status: intents.Failed, Code: x.Code, Reason: x.Reason}
	if instead == nil {
		rec, err := storage.RecordOf(storage.KindOutcome, now, out)
		return storage.Entry{Record: rec, Of: w.Position, Holder: storage.Nobody, Touches: w.Touches()}, err
	}
	var err error
	if out.Result, err = json.Marshal(instead); err != nil {
		return storage.Entry{}, err
	}
	rec, err := storage.OutcomeRecord(now, out) // the result can be erased
	return storage.Entry{Record: rec, Of: w.Position, Holder: storage.Nobody, Touches: w.Touches()}, err
}

// endings are the outcomes of held orders that end with what an order of the
// router does: those of a plan that ends, or of a step that a revision drops.
func (r *Router) endings(o *order) ([]storage.Entry, error) {
	held := o.view.EndedHolds(state.OrderOf(o.env, o.roles, o.now))
	var out []storage.Entry
	for _, w := range held {
		if o.released && w.Position == o.position {
			continue // it was held itself, and is what ends them
		}
		e, err := ending(w, intents.Refuse(intents.Cancelled, "", "its plan has ended, or its step was dropped"), nil, o.now)
		if err != nil {
			return nil, err
		}
		out = append(out, e)
	}
	return out, nil
}

// expiryPace is how often holds are looked at for deadlines that have passed.
const expiryPace = time.Second

// WatchHolds ends holds whose deadline passes, and releases those that were met, until ctx ends; then it waits
// for released orders that are being carried out.
func (r *Router) WatchHolds(ctx context.Context) error {
	defer r.running.Wait()
	tick := time.NewTicker(expiryPace)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			r.eraseLater(ctx)
			if err := errors.Join(r.ExpireHolds(ctx), r.ReleaseSettled(ctx)); err != nil && ctx.Err() == nil {
				r.cfg.Log.WarnContext(ctx, "holds that are over stay", slog.String("error", err.Error()))
			}
		}
	}
}

// ExpireHolds ends every hold that is past its deadline. One that somebody else
// ends or releases at the same time is left to them.
func (r *Router) ExpireHolds(ctx context.Context) error {
	now := r.cfg.Now().UTC().Truncate(time.Millisecond)
	if _, blocked := r.blocked(); blocked {
		return nil // the clock may be wrong
	}
	for _, w := range r.state.View().Expired(now) {
		v := r.state.View()
		if _, still := v.Hold(w.Tenant, w.Decision.IntentID); !still {
			continue
		}
		e, err := ending(w, intents.Refuse(intents.ApprovalExpired, "", "what it waited for did not come in time"), nil, now)
		if err != nil {
			return err
		}
		c := storage.Commit{ID: rand.Text(), Seen: v.Seen(), Asserts: v.Asserts(), Entries: []storage.Entry{e}}
		if _, err := r.cfg.Journal.Commit(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

// DefaultUserHolds and DefaultTenantHolds bound how many orders may wait for
// people at once: more would expire before anybody reads them.
const (
	DefaultUserHolds   = 20
	DefaultTenantHolds = 200
)

// mayHold bounds the holds of a user and of a tenant. Orders that are decided at
// once may go beyond it by as many.
func (r *Router) mayHold(o *order) error {
	pr := o.env.Principal()
	user, tenant := r.state.HeldOf(pr.Tenant, pr.UserID)
	if below(user, r.cfg.UserHolds) && below(tenant, r.cfg.TenantHolds) {
		return nil
	}
	x := intents.Refuse(intents.Overloaded, "", "too many orders of this user or tenant wait for approval")
	x.RetryAfter = holdRetry
	return x
}

// below a bound; a negative one is none.
func below(n, bound int) bool { return bound < 0 || n < bound }

// holdRetry is when to try again where too much waits for people.
const holdRetry = time.Minute
