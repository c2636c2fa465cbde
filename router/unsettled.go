package router

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
)

// unsettled says whether nobody knows what became of an earlier call of the order's skill in
// the step, and what is to be done then.
func (o *order) unsettled() (unknown bool, hint string) {
	f := o.view.Unsettled(o.inPlan())
	switch {
	case f == nil:
		return false, ""
	case f.Status == string(intents.StatusIndetermined):
		return true, "once somebody has looked whether it happened: writ order resolve " + f.IntentID + " done|failed --reason TEXT"
	default:
		return true, "it goes on by itself once " + f.IntentID + " has ended"
	}
}

// ReleaseSettled releases the orders on hold that waited until it was known what became of
// another one, where that is known and people have approved what they have to; and those that
// people have made of others, where nobody but the editors has to approve them. Each is
// judged again, and ends if it is refused by now.
//
// Crash between the outcome that made it known, or order.resolve, and the release: the order
// waits on, and is released after the next start. After the release: the order is open, and
// recovery ends it by its effect.
func (r *Router) ReleaseSettled(ctx context.Context) (err error) {
	if _, blocked := r.blocked(); blocked {
		return nil // the clock may be wrong
	}
	v := r.state.View()
	for _, w := range append(v.AwaitSettled(), v.Edited()...) {
		err = errors.Join(err, r.releaseSettled(ctx, w))
	}
	return err
}

func (r *Router) releaseSettled(ctx context.Context, w state.Hold) (err error) {
	o := &order{view: r.state.View(), now: r.cfg.Now().UTC().Truncate(time.Millisecond), settled: &settlement{}}
	w, still := o.view.Hold(w.Tenant, w.Decision.IntentID)
	if !still || !o.now.Before(w.Deadline) || len(w.Missing()) > 0 || o.view.Unsettled(&w.Order) != nil {
		return nil
	}
	o.view.RelyOnPolicy(w.Tenant)
	if o.policy, err = r.engine(ctx, o.view); err != nil {
		return err
	}
	if len(w.Approvals) == 1 {
		o.decision.IntentID = w.Edit // the one approval of what people have made of another order
	}
	o.decision.PolicyDigest, o.decision.Catalog, o.decision.Directory = o.policy.Digest(), r.cfg.Catalog.Digest(), o.view.Position()
	if err := r.releaseHeld(ctx, o, w, &catalog.ApproveResult{}); err != nil || len(o.settled.entries) == 0 {
		r.release(o)
		return err
	}
	res, err := r.cfg.Journal.Commit(context.WithoutCancel(ctx), storage.Commit{ID: rand.Text(), Seen: o.view.Seen(), Asserts: o.view.Asserts(), Entries: o.settled.entries})
	if err != nil || res.Verdict != storage.Won { // changed meanwhile: it is looked at again
		r.release(o)
	} else if o.settled.released != nil {
		r.dispatchAsync(ctx, o.settled.released)
	}
	return err
}
