package router

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

// SubmitBatch takes up to a hundred orders of one tenant, which are accepted
// together or not at all: n × decide, one commit, n × perform in order up to the
// first that is not done. Orders after it end failed with CANCELLED, which gives
// their keys back; nothing that was done is undone. Orders of the router have
// their effect with the commit.
//
// Sent again, it goes on where it stopped: orders that are done are answered as
// duplicates. While one of them is in flight the batch is too; wait is how long
// that is waited for.
//
// Crash: before the commit nothing is left; after it, recovery ends the order
// that was being carried out by its effect and cancels those after it.
func (r *Router) SubmitBatch(ctx context.Context, raw []byte, wait time.Duration) *intents.BatchAnswer {
	raws, err := r.openBatch(raw)
	if err != nil {
		return r.refuseBatch(ctx, nil, err)
	}
	waiting, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	sent := &batch{raws: raws, slots: r.batches}
	defer sent.leave()
	for i := 0; i < maxDecisions; i++ {
		b, err := r.submitBatch(ctx, sent, i > 0)
		var f *batchError
		switch {
		case err == nil:
			return b
		case errors.As(err, &f) && f.open && r.awaited(waiting, f.position):
			i = 0 // bounded by the wait, and decided again
		case errors.Is(err, errStale):
		case b != nil:
			return b
		default:
			return r.refuseBatch(ctx, raws, err)
		}
	}
	return r.refuseBatch(ctx, raws, intents.Refuse(intents.Overloaded, "", "what the decisions rest on changes too fast"))
}

// submitBatch goes through the stages once. An answer that comes with an error
// is that of a batch whose orders were all submitted before and are in flight.
func (r *Router) submitBatch(ctx context.Context, sent *batch, again bool) (*intents.BatchAnswer, error) {
	seen := r.cfg.Records.Next()
	orders, err := r.decideBatch(ctx, sent.raws, again)
	refused := err != nil || slices.ContainsFunc(orders, func(o *order) bool { return o.decision.Verdict == intents.Deny })
	if refused && r.refreshed(ctx, seen) { // it may come of what another router has committed
		orders, err = r.decideBatch(ctx, sent.raws, true)
	}
	if err != nil {
		return nil, err
	}
	if err := sent.enter(orders); err != nil {
		return nil, err
	}
	if err := r.acceptable(ctx, orders); err != nil {
		return nil, err
	}
	if err := r.commitBatch(ctx, orders); err != nil {
		return nil, err
	}
	b := r.performBatch(ctx, orders)
	if i := b.Index; b.Code == intents.InFlight && orders[*i].duplicate != nil {
		d := orders[*i].duplicate
		return b, &batchError{index: *i, err: d.unfinished(), open: true, position: d.holder.Position}
	}
	return b, nil
}

// DryRunBatch decides a batch and leaves no trace.
func (r *Router) DryRunBatch(ctx context.Context, raw []byte) *intents.BatchAnswer {
	raws, err := r.openBatch(raw)
	if err != nil {
		return batchRefusal(nil, err)
	}
	orders, err := r.decideBatch(ctx, raws, false)
	for i := 0; i < len(orders) && err == nil; i++ {
		if x := mayExplain(orders[i]); x != nil {
			err = &batchError{index: i, err: x}
		}
	}
	if err == nil {
		err = r.fit(orders)
	}
	if err != nil {
		return batchRefusal(raws, err)
	}
	b := &intents.BatchAnswer{Code: intents.OK}
	for _, o := range orders {
		b.Answers = append(b.Answers, r.decided(o))
	}
	return b
}

func (r *Router) openBatch(raw []byte) ([][]byte, error) {
	if err := r.unready(); err != nil {
		return nil, err
	}
	return intents.ParseBatch(raw)
}

// decideBatch decides every order on the state as it is: none sees what another
// one of the batch will do. The error names the order that stages 1, 2 and 4, or
// a rate, refuse.
func (r *Router) decideBatch(ctx context.Context, raws [][]byte, again bool) ([]*order, error) {
	orders := make([]*order, len(raws))
	for i, raw := range raws {
		o, err := r.decide(ctx, raw, again)
		if err != nil {
			return nil, &batchError{index: i, err: err}
		}
		if i > 0 && o.env.Principal().Tenant != orders[0].env.Principal().Tenant {
			return nil, &batchError{index: i, err: intents.Refuse(intents.RBACForbidden, "/actor/tenant", "a batch is one tenant's")}
		}
		orders[i] = o
	}
	return orders, nil
}

// acceptable refuses a batch that does not fit, and records each of its orders
// that is refused by itself.
func (r *Router) acceptable(ctx context.Context, orders []*order) error {
	for _, o := range orders {
		if o.decision.Verdict != intents.Deny {
			continue
		}
		if err := r.commit(ctx, o); err != nil {
			return err
		}
		if o.duplicate != nil || o.repeated {
			continue // counted with the batch, if it is to blame
		}
		r.countRefusal(o)
	}
	return r.fit(orders)
}

// batchError is why nothing of a batch was accepted.
type batchError struct {
	index    int
	err      error
	answer   *intents.Answer // of an order that was decided
	recorded bool            // a record says so
	open     bool            // an equal order is being carried out,
	position int64           // at this position
}

func (f *batchError) Error() string { return f.err.Error() }
func (f *batchError) Unwrap() error { return f.err }

// awaited waits for the outcome of an order until ctx ends, if there is room to.
func (r *Router) awaited(ctx context.Context, position int64) bool {
	a, err := r.awaitIfRoom(ctx, position)
	return err == nil && a != nil && a.Code != intents.InFlight
}

// refuseBatch answers a batch of which nothing was accepted, and counts it.
func (r *Router) refuseBatch(ctx context.Context, raws [][]byte, err error) *intents.BatchAnswer {
	var f *batchError
	if !errors.As(err, &f) {
		r.turnedDown(ctx, nil, err)
	} else if !f.recorded {
		r.turnedDown(ctx, raws[f.index], err)
	}
	if intents.CodeOf(err) == intents.Internal {
		r.cfg.Log.ErrorContext(ctx, "batch", slog.String("error", err.Error()))
	}
	return batchRefusal(raws, err)
}

// batchRefusal is the answer about a batch of which nothing was accepted.
func batchRefusal(raws [][]byte, err error) *intents.BatchAnswer {
	var f *batchError
	if !errors.As(err, &f) {
		a := Refused(nil, err)
		return &intents.BatchAnswer{Code: a.Code, Pointer: a.Pointer, Reason: a.Reason, Hint: a.Hint}
	}
	a := f.answer
	if a == nil {
		a = Refused(raws[f.index], f.err)
	}
	b := &intents.BatchAnswer{Code: a.Code, Index: &f.index, Pointer: intents.BatchPointer(f.index, a.Pointer), Reason: a.Reason, Hint: a.Hint, Fault: a}
	return b
}

// dispatched says whether an accepted order is carried out by an executor.
func (o *order) dispatched() bool {
	return o.duplicate == nil && o.decision.Verdict == intents.Allow && o.row.Executor != catalog.ExecutorRouter
}
