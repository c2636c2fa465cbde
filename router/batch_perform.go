package router

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"math"
	"slices"

	"aob.dev/writ/intents"
	"aob.dev/writ/internal/clock"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
)

// commitBatch is stage 8 for all orders of a batch at once; those that were
// submitted before have their records. A batch takes one slot: its orders are
// carried out one after the other.
func (r *Router) commitBatch(ctx context.Context, orders []*order) error {
	slot := firstDispatched(orders)
	if slot != nil {
		if err := r.admit(slot); err != nil {
			return err
		}
	}
	err := r.writeBatch(context.WithoutCancel(ctx), orders)
	if err != nil && slot != nil {
		r.release(slot)
	}
	return err
}

func firstDispatched(orders []*order) *order {
	if i := slices.IndexFunc(orders, (*order).dispatched); i >= 0 {
		return orders[i]
	}
	return nil
}

func (r *Router) writeBatch(ctx context.Context, orders []*order) error {
	c := storage.Commit{ID: rand.Text(), Seen: math.MaxInt64}
	relied := map[storage.Subject]int64{}
	first := make([]int, len(orders)) // where each order's record stands in the commit
	fresh, opened, probes := 0, 0, map[string]int{}
	for _, o := range orders {
		if o.duplicate == nil {
			fresh++
		}
	}
	for i, o := range orders {
		if o.duplicate != nil {
			continue
		}
		first[i] = len(c.Entries)
		o.decision.Batch = &intents.BatchRef{Index: i, Offset: int64(len(c.Entries)), Of: fresh}
		if state.Opens(o.env.Type()) {
			if err := r.mayOpen(o, opened); err != nil {
				return &batchError{index: i, err: err}
			}
			opened++
		}
		if name := o.inPlan().BreakerName(); o.dispatched() {
			if o.mark(probes[name]); o.facts.Breaker == intents.BreakerProbes {
				probes[name]++
			}
		}
		one, err := r.entries(o)
		if err != nil {
			return err
		}
		c.Seen = min(c.Seen, one.Seen)
		for _, a := range one.Asserts {
			if at, ok := relied[a.Subject]; ok && at != a.At {
				return errStale // it changed between two of the decisions
			} else if !ok {
				relied[a.Subject] = a.At
				c.Asserts = append(c.Asserts, a)
			}
		}
		c.Entries = append(c.Entries, one.Entries...)
	}
	if len(c.Entries) == 0 {
		return nil
	}
	res, err := r.cfg.Journal.Commit(ctx, c)
	if x := r.notTaken(err); x != nil {
		return x
	}
	switch {
	case err != nil:
		return intents.Refuse(intents.InFlight, "", "it is not known whether the batch was accepted: send it again")
	case res.Verdict != storage.Won:
		return errStale // who lost a key finds its holder when it is decided again
	}
	for i, o := range orders {
		if o.duplicate == nil {
			o.position = res.Positions[first[i]]
		}
	}
	return nil
}

// performBatch is stages 9 and 10, order by order.
func (r *Router) performBatch(ctx context.Context, orders []*order) *intents.BatchAnswer {
	ctx = clock.Lasting(ctx)
	if slot := firstDispatched(orders); slot != nil {
		defer r.release(slot)
	}
	b := &intents.BatchAnswer{Code: intents.OK}
	for i, o := range orders {
		a, err := r.inTurn(ctx, o, b.Code != intents.OK)
		if err != nil {
			r.cfg.Log.ErrorContext(ctx, "batch", slog.Int("index", i), slog.String("error", err.Error()))
			a = &intents.Answer{IntentID: o.env.ID(), TraceID: o.env.TraceID(), Position: &o.position, Code: intents.Internal}
		}
		b.Answers = append(b.Answers, a)
		if a.Code != intents.OK && b.Code == intents.OK {
			b.Code, b.Index, b.Pointer = a.Code, &i, intents.BatchPointer(i, a.Pointer)
			b.Reason, b.Hint = a.Reason, a.Hint
		}
	}
	return b
}

// inTurn is perform for an order of a batch that holds a slot; stopped: one
// before it is not done.
func (r *Router) inTurn(ctx context.Context, o *order, stopped bool) (*intents.Answer, error) {
	if !o.dispatched() {
		return r.perform(ctx, o)
	}
	r.accepted(o)
	var out intents.Outcome
	if stopped {
		out = cancelled(o.position, o.attempt, "an order before it in its batch is not done: it was not carried out")
	} else {
		out = r.dispatch(ctx, o)
	}
	r.finishAtLast(ctx, o, out) // the next one begins after it
	return r.recorded(o)
}

// cancelled is the outcome of an accepted order that surely was not carried out:
// its key is free for the same order.
func cancelled(position int64, attempt int, reason string) intents.Outcome {
	return intents.Outcome{Of: position, Attempt: attempt, Status: intents.Failed, Code: intents.Cancelled, Retryable: true, Reason: reason}
}

// stoppedBatch says whether an open order is of a batch that a crash has
// stopped before its turn; if so it has ended it. seen are the batches, by the
// position of their first record, of which an open order was recovered.
func (r *Router) stoppedBatch(ctx context.Context, x storage.OpenOrder, seen map[int64]bool) (bool, error) {
	rec, err := r.cfg.Records.Get(ctx, x.Position)
	if err != nil {
		return false, err
	}
	d, err := decisionOf(rec)
	if err != nil {
		return false, err
	}
	if d.Batch == nil {
		return false, nil
	}
	first := x.Position - d.Batch.Offset
	stopped := seen[first]
	for at := first; at < x.Position && !stopped; at++ {
		if stopped, err = r.notDone(ctx, at); err != nil {
			return false, err
		}
	}
	seen[first] = true
	if !stopped {
		return false, nil // it is the one that was being carried out
	}
	o, err := r.reopen(ctx, x)
	var refusal *intents.Refusal
	if err != nil && !errors.As(err, &refusal) {
		return false, err
	}
	r.finishAtLast(ctx, o, cancelled(x.Position, x.Attempt, "a crash stopped its batch: it was not carried out"))
	return true, nil
}

// notDone says whether a record is an order that did not end well.
func (r *Router) notDone(ctx context.Context, position int64) (bool, error) {
	h, err := r.cfg.Journal.Holder(ctx, position)
	if errors.Is(err, storage.ErrNotFound) || err == nil && h.Position != position {
		return false, nil // an outcome
	}
	if err != nil {
		return false, err
	}
	d, err := r.readDuplicate(ctx, h)
	if err != nil {
		return false, err
	}
	return d.outcome == nil || d.outcome.Status != intents.Done, nil
}
