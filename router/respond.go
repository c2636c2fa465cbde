package router

import (
	"context"

	"aob.dev/writ/bus"
	"aob.dev/writ/intents"
	"aob.dev/writ/storage"
)

// recorded is the answer about an intent that has a record.
func (r *Router) recorded(x *execution) (*intents.Answer, error) {
	a := x.answer()
	a.Position = &x.position
	if x.Verdict == intents.Deny {
		return a, nil // a refusal is answered, not receipted: it changed nothing
	}
	withOutcome(a, x.record.out)
	if x.Verdict == intents.Hold {
		a.Approval = bus.ApprovalURL(a.IntentID)
	}
	return a, r.receipt(a, x.position, x.Decision, *x.record)
}

// answerDuplicate answers a duplicate with the winner's intent_id and receipt.
func (r *Router) answerDuplicate(d *duplicate, trace string) (*intents.Answer, error) {
	a := &intents.Answer{
		IntentID: d.decision.IntentID, TraceID: trace, Position: &d.holder.Position,
		Decision: &d.decision, Code: d.decision.Code, Reason: d.decision.Reason,
	}
	switch {
	case d.outcome != nil:
		a.Replayed = true
		withOutcome(a, d.outcome)
	case d.holder.State == storage.StateHeld:
		a.Code, a.Approval = intents.ApprovalRequired, bus.ApprovalURL(a.IntentID)
	default:
		a.Code, a.Reason, a.Hint = intents.InFlight, "the same intent is being carried out", intents.InFlight.Info().Hint
		return a, nil
	}
	return a, r.receipt(a, d.holder.Position, d.decision, d.digests)
}

// withOutcome puts an outcome into an answer; without one the intent is open.
func withOutcome(a *intents.Answer, out *intents.Outcome) {
	if out == nil {
		if a.Code == intents.OK {
			a.Code, a.Reason = intents.InFlight, "the outcome is not durable yet"
		}
		return
	}
	a.Outcome, a.Code, a.Reason = out, out.Code, out.Reason
}

// receipt signs the content of the records. It is a pure function of them, and Ed25519 is
// deterministic: the same intent gives the same receipt.
func (r *Router) receipt(a *intents.Answer, position int64, d intents.Decision, ref recordedRef) error {
	token, err := intents.IssueReceipt(r.cfg.Key, intents.Receipt{
		Issuer: r.state.Origin(), IntentID: d.IntentID, Position: position,
		Code: a.Code, PolicyDigest: d.PolicyDigest, RecordDigest: ref.record, OutcomeDigest: ref.outcome, WithinSec: intents.PromiseSeconds,
	})
	a.Receipt = token
	return err
}

// Await waits for the outcome of an intent and answers as for a duplicate. If ctx ends first the
// answer is IN_FLIGHT.
func (r *Router) Await(ctx context.Context, position int64) (*intents.Answer, error) {
	done := r.waiters.wait(position)
	defer r.waiters.forget(position, done)
	h, err := r.cfg.Journal.Holder(ctx, position)
	if err != nil {
		return nil, err
	}
	if h.State == storage.StateOpen {
		select {
		case <-done:
		case <-ctx.Done():
		}
		if h, err = r.cfg.Journal.Holder(context.WithoutCancel(ctx), position); err != nil {
			return nil, err
		}
	}
	d, err := r.readDuplicate(context.WithoutCancel(ctx), h)
	if err != nil {
		return nil, err
	}
	return r.answerDuplicate(d, "")
}

// Intent answers about a recorded intent by position, for reads.
func (r *Router) Intent(ctx context.Context, position int64) (*intents.Answer, error) {
	rec, err := r.cfg.Records.Get(ctx, position)
	if err != nil {
		return nil, err
	}
	if rec.Kind != storage.KindIntent {
		return nil, storage.ErrNotFound
	}
	d, err := decisionOf(rec)
	if err != nil {
		return nil, err
	}
	if d.Verdict == intents.Deny {
		a := answerOf(&d)
		a.Position = &position
		return a, nil
	}
	h, err := r.cfg.Journal.Holder(ctx, position)
	if err != nil {
		return nil, err
	}
	dup, err := r.readDuplicate(ctx, h)
	if err != nil {
		return nil, err
	}
	a, err := r.answerDuplicate(dup, "")
	if a != nil {
		a.Replayed = false
	}
	return a, err
}
