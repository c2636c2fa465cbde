package router

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"aob.dev/writ/bus"
	"aob.dev/writ/intents"
)

// SubmitBatch accepts up to a hundred intents of one tenant together or not at all: n × decide, one
// commit, n × perform in order up to the first that fails. Later intents end failed with CANCELLED,
// which frees their keys; completed intents are not undone. Intents of the router take effect with
// the commit.
//
// A resubmitted batch continues where it stopped: completed intents are answered as duplicates.
// While one of them is in flight, so is the batch; wait bounds the wait for it.
//
// Crash before the commit: nothing is left. After it: recovery ends the intent that was being
// executed by its effect and cancels those after it.
func (r *Router) SubmitBatch(ctx context.Context, raw []byte, wait time.Duration) *intents.BatchAnswer {
	if !r.decides() {
		b, err := forward[*intents.BatchAnswer](ctx, r, bus.Batches, raw)
		if err != nil {
			return batchRefusal(nil, err)
		}
		return b
	}
	raws, err := r.openBatch(raw)
	if err != nil {
		return r.refuseBatch(ctx, nil, err)
	}
	waiting, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	sent := newBatch(raws, r.batches)
	defer sent.leave()
	for i := 0; i < maxDecisions; i++ {
		b, err := r.submitBatch(ctx, sent)
		var f *batchError
		switch {
		case err == nil:
			return b
		case errors.As(err, &f) && f.open && r.awaited(waiting, sent.first, f.position):
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

// submitBatch runs the stages once. An answer returned with an error is that of a batch whose
// intents were all submitted before and are in flight.
func (r *Router) submitBatch(ctx context.Context, sent *batch) (*intents.BatchAnswer, error) {
	decided, err := r.decideBatch(ctx, sent)
	if err != nil {
		return nil, err
	}
	if err := sent.enter(decided[0].env); err != nil {
		return nil, err
	}
	if err := r.acceptable(ctx, decided); err != nil {
		return nil, err
	}
	batch, err := r.commitBatch(ctx, decided)
	var sick *batchError
	if errors.As(err, &sick) && intents.CodeOf(err) == intents.DispatchUnavailable { // a skill server is not called
		refusal, _ := errors.AsType[*intents.Refusal](sick.err)
		decided[sick.index].refuse(refusal)
		return nil, r.acceptable(ctx, decided)
	}
	if err != nil {
		return nil, err
	}
	b := r.performBatch(ctx, batch)
	if i := b.Index; b.Code == intents.InFlight && batch[*i].duplicate != nil {
		d := batch[*i].duplicate
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
	decided, err := r.decideBatch(ctx, newBatch(raws, nil))
	for i := 0; i < len(decided) && err == nil; i++ {
		if x := mayExplain(decided[i]); x != nil {
			err = &batchError{index: i, err: x}
		}
	}
	if err == nil {
		err = fit(decided)
	}
	if err != nil {
		return batchRefusal(raws, err)
	}
	b := &intents.BatchAnswer{Code: intents.OK}
	for _, d := range decided {
		b.Answers = append(b.Answers, d.answer())
	}
	return b
}

func (r *Router) openBatch(raw []byte) ([][]byte, error) {
	if err := r.unready(); err != nil {
		return nil, err
	}
	return intents.ParseBatch(raw)
}

// decideBatch decides every intent on the current state: none sees the effects of another in the
// batch. The error names the intent that stages 1, 2 and 4, or a rate, refuse.
func (r *Router) decideBatch(ctx context.Context, sent *batch) (_ []*decision, err error) {
	decided := make([]*decision, len(sent.raws))
	for i, raw := range sent.raws {
		if sent.envs[i] == nil {
			var in verified
			in, err = r.verify(ctx, raw)
			sent.envs[i] = in.env
		}
		if err == nil {
			err = r.explained(sent.envs[i])
		}
		if err == nil {
			decided[i], err = r.decideNow(ctx, sent.envs[i])
		}
		if err != nil {
			return nil, &batchError{index: i, err: err}
		}
		if i > 0 && decided[i].env.Principal().Tenant != decided[0].env.Principal().Tenant {
			return nil, &batchError{index: i, err: intents.Refuse(intents.RBACForbidden, "/actor/tenant", "a batch is one tenant's")}
		}
	}
	return decided, nil
}

// acceptable refuses a batch that does not fit, and records each of its intents that is refused on
// its own.
func (r *Router) acceptable(ctx context.Context, decided []*decision) (first error) {
	for i, d := range decided {
		if d.Verdict != intents.Deny {
			continue
		}
		x, err := r.commit(ctx, d)
		if err != nil {
			return err
		}
		if x.record != nil { // otherwise it is counted with the batch, if it is to blame
			r.countRefusal(x)
		}
		if first == nil {
			first = denied(i, d, x.record != nil)
		}
	}
	if first != nil {
		return first
	}
	return fit(decided)
}

// denied is the error of a batch that was not accepted because one intent is refused on its own.
func denied(index int, d *decision, recorded bool) error {
	return &batchError{index: index, err: d.refusal(), answer: d.answer(), recorded: recorded}
}

// batchError is the reason why nothing of a batch was accepted.
type batchError struct {
	index    int
	err      error
	answer   *intents.Answer // of an intent that was decided
	recorded bool            // it has a record
	open     bool            // an equal intent is in flight,
	position int64           // at this position
}

func (f *batchError) Error() string { return f.err.Error() }
func (f *batchError) Unwrap() error { return f.err }

// awaited waits for the outcome of an intent until ctx ends, if a place to wait is free.
func (r *Router) awaited(ctx context.Context, of *intents.Envelope, position int64) bool {
	a, err := r.awaitIfRoom(ctx, of, position)
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
		a := RefusalAnswer(nil, err)
		return &intents.BatchAnswer{Code: a.Code, Pointer: a.Pointer, Reason: a.Reason, Hint: a.Hint}
	}
	a := f.answer
	if a == nil {
		a = RefusalAnswer(raws[f.index], f.err)
	}
	b := &intents.BatchAnswer{Code: a.Code, Index: &f.index, Pointer: intents.BatchPointer(f.index, a.Pointer), Reason: a.Reason, Hint: a.Hint, Fault: a}
	return b
}
