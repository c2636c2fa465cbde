package router

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/internal/clock"
	"aob.dev/writ/internal/failpoint"
	"aob.dev/writ/storage"
)

// Pauses between attempts to write an outcome: the first one and the longest.
const (
	finishPause    = 100 * time.Millisecond
	maxFinishPause = 5 * time.Second
)

// finishAtLast repeats finish until the outcome is durable: a full disk or absent servers recover.
// If the process ends before that, the intent stays open for recovery.
func (r *Router) finishAtLast(ctx context.Context, x *execution, out intents.Outcome) {
	ctx = clock.Lasting(ctx)
	if err := r.finish(ctx, x, out); err != nil {
		r.finishInBackground(ctx, x, out, err)
	}
}

// finishInBackground retries a finish that failed.
func (r *Router) finishInBackground(ctx context.Context, x *execution, out intents.Outcome, err error) {
	if ctx.Err() != nil {
		return
	}
	r.cfg.Log.ErrorContext(ctx, "an outcome cannot be written: it is tried again until it is; make room, or see to the journal's servers",
		slog.String("intent_id", x.env.ID()), slog.Int64("position", x.position), slog.String("error", err.Error()))
	for wait := finishPause; err != nil && clock.Sleep(ctx, wait) == nil; wait = min(2*wait, maxFinishPause) {
		err = r.finish(ctx, x, out)
	}
}

// finish is stage 10: the outcome is durable before anybody is answered. The error is why it was
// not written. An intent left because the process ends gets no outcome unless it succeeded.
func (r *Router) finish(ctx context.Context, x *execution, out intents.Outcome) error {
	if err := ctx.Err(); err != nil && out.Status != intents.Done {
		return err
	}
	if out.Status == intents.Done && x.ofNode() {
		out.Outputs = x.view.OutputsOf(*x.task, out.Result)
		out.Events = append(out.Events, r.compared(ctx, &x.decision, out.Result)...)
	}
	out.Sources = r.read(&x.decision, out.Sources)
	kept := out
	if out.Result != nil {
		kept.Result = recordedResult(x.env.Type(), out.Result)
	}
	rec, err := storage.OutcomeRecord(r.cfg.Now(), kept)
	if err != nil { // the report is not valid JSON
		out = r.failed(x, intents.Outcome{Target: out.Target, Attempt: out.Attempt, MS: out.MS}, err)
		if rec, err = storage.OutcomeRecord(r.cfg.Now(), out); err != nil {
			return err
		}
	}
	in := x.inPlan()
	_, err = r.cfg.Journal.Finish(context.WithoutCancel(ctx), x.position, x.attempt, rec, in.OutcomeWrites(out, x.release != nil))
	if errors.Is(err, storage.ErrFinished) {
		return nil // the first outcome wins; recorded reads it
	}
	if err != nil {
		return err
	}
	failpoint.Hit(failpoint.IntentFinished)
	x.record.outcome, x.record.out = rec.Digest(), &out
	r.metrics.finished(out.Code)
	r.acknowledge(x) //nolint:contextcheck // it is told later, with others
	return nil
}
