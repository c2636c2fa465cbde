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

// commitBatch is stage 8 for all intents of a batch at once; those submitted before have their
// records. A batch takes one slot, because its intents run one after the other.
func (r *Router) commitBatch(ctx context.Context, decided []*decision) ([]*execution, error) {
	batch := make([]*execution, len(decided))
	for i, d := range decided {
		batch[i] = newExecution(d)
	}
	slot := firstDispatched(batch)
	if slot != nil {
		if err := r.admit(slot); err != nil {
			return nil, err
		}
	}
	err := r.writeBatch(context.WithoutCancel(ctx), batch)
	if err != nil && slot != nil {
		r.leave(slot)
	}
	return batch, err
}

func firstDispatched(batch []*execution) *execution {
	if i := slices.IndexFunc(batch, func(x *execution) bool { return x.dispatched() }); i >= 0 {
		return batch[i]
	}
	return nil
}

func (r *Router) writeBatch(ctx context.Context, batch []*execution) error {
	c := storage.Commit{ID: rand.Text(), AsOf: math.MaxInt64}
	relied := map[storage.Subject]int64{}
	first := make([]int, len(batch)) // index of each intent's record in the commit
	fresh, opened, probes := 0, 0, map[string]int{}
	for _, x := range batch {
		if x.duplicate == nil {
			fresh++
		}
	}
	for i, x := range batch {
		if x.duplicate != nil {
			continue
		}
		first[i] = len(c.Entries)
		x.Batch = &intents.BatchRef{Index: i, Offset: int64(len(c.Entries)), Size: fresh}
		if state.Opens(x.env.Type()) {
			if err := r.mayOpen(&x.decision, opened); err != nil {
				return &batchError{index: i, err: err}
			}
			opened++
		}
		if name := x.inPlan().BreakerName(); x.dispatched() {
			if x.mark(probes[name]); x.inputs.Breaker == intents.BreakerProbes {
				probes[name]++
			}
		}
		one, err := x.entries()
		if err != nil {
			return err
		}
		c.AsOf = min(c.AsOf, one.AsOf)
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
	if refusal := r.commitRefusal(err); refusal != nil {
		return refusal
	}
	switch {
	case err != nil:
		return intents.Refuse(intents.InFlight, "", "it is not known whether the batch was accepted: send it again")
	case res.Verdict != storage.Won:
		return errStale // an intent that lost a key finds the key's holder when it is decided again
	}
	for i, x := range batch {
		if x.duplicate == nil {
			x.position = res.Positions[first[i]]
		}
	}
	return nil
}

// performBatch is stages 9 and 10, intent by intent.
func (r *Router) performBatch(ctx context.Context, batch []*execution) *intents.BatchAnswer {
	ctx = clock.Lasting(ctx)
	if slot := firstDispatched(batch); slot != nil {
		defer r.leave(slot)
	}
	b := &intents.BatchAnswer{Code: intents.OK}
	for i, x := range batch {
		a, err := r.inTurn(ctx, x, b.Code != intents.OK)
		if err != nil {
			r.cfg.Log.ErrorContext(ctx, "batch", slog.Int("index", i), slog.String("error", err.Error()))
			a = &intents.Answer{IntentID: x.env.ID(), TraceID: x.env.TraceID(), Position: &x.position, Code: intents.Internal}
		}
		b.Answers = append(b.Answers, a)
		if a.Code != intents.OK && b.Code == intents.OK {
			b.Code, b.Index, b.Pointer = a.Code, &i, intents.BatchPointer(i, a.Pointer)
			b.Reason, b.Hint = a.Reason, a.Hint
		}
	}
	return b
}

// inTurn is perform for an intent of a batch, which holds a slot. stopped means that an earlier
// intent of the batch failed.
func (r *Router) inTurn(ctx context.Context, x *execution, stopped bool) (*intents.Answer, error) {
	if !x.dispatched() {
		return r.perform(ctx, x)
	}
	r.accepted(&x.decision)
	var out intents.Outcome
	if stopped {
		out = cancelled(x.position, x.attempt, "an intent before it in its batch is not done: it was not carried out")
	} else {
		out, _ = r.dispatch(ctx, x)
	}
	r.finishAtLast(ctx, x, out) // the next one begins after it
	return r.recorded(x)
}

// cancelled is the outcome of an accepted intent that certainly was not executed. Its key is free
// for the same intent.
func cancelled(position int64, attempt int, reason string) intents.Outcome {
	return intents.Outcome{Target: position, Attempt: attempt, Status: intents.Failed, Code: intents.Cancelled, Retryable: true, Reason: reason}
}

// stoppedBatch reports whether an open intent belongs to a batch that a crash stopped before the
// intent's turn; if so it has ended the intent. seen holds the batches, by the position of their
// first record, of which an open intent was recovered.
func (r *Router) stoppedBatch(ctx context.Context, x storage.OpenIntent, seen map[int64]bool) (bool, error) {
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
		return false, nil // it is the one that was being executed
	}
	o, err := r.reopen(ctx, x)
	var refusal *intents.Refusal
	if err != nil && !errors.As(err, &refusal) {
		return false, err
	}
	r.finishAtLast(ctx, o, cancelled(x.Position, x.Attempt, "a crash stopped its batch: it was not carried out"))
	return true, nil
}

// notDone reports whether a record is an intent that did not succeed.
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
