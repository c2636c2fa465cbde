package router

import (
	"context"
	"errors"
	"log/slog"

	"aob.dev/writ/intents"
	"aob.dev/writ/internal/clock"
	"aob.dev/writ/storage"
)

// commitBatch is stage 8 for all intents of a batch at once; those submitted before have their
// records.
func (r *Router) commitBatch(ctx context.Context, decided []*decision) (batch []*execution, err error) {
	var fresh []*execution
	for i, d := range decided {
		x := newExecution(d)
		batch = append(batch, x)
		if x.duplicate == nil {
			x.Batch = &intents.BatchRef{Index: i}
			fresh = append(fresh, x)
		}
	}
	if len(fresh) > 0 {
		err = r.write(ctx, fresh)
	}
	return batch, err
}

// inBatch is the error of an intent, which names it in its batch if it has one.
func (x *execution) inBatch(err error) error {
	if x.Batch == nil {
		return err
	}
	return &batchError{index: x.Batch.Index, err: err}
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
