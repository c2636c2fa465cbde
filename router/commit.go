package router

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
)

// commit is stage 8: one durable compare-and-set before anything happens. The loser is a duplicate;
// what cannot be committed is not accepted. A denial is a commit that takes no key, at most once
// per intent and code. Like any decision it asserts its reads: whoever reads the record judges it
// by the keys and grants at its position.
//
// Crash before it: nothing is left. After it: an allowed intent is open and recovery ends it; an
// intent of the router has its effect and its outcome.
func (r *Router) commit(ctx context.Context, d *decision) (*execution, error) {
	x := newExecution(d)
	if x.duplicate != nil {
		return x, nil
	}
	won, err := r.write(ctx, x)
	if !won {
		r.leave(x)
	}
	return x, err
}

// write commits an execution. Its slot is freed if it did not win.
func (r *Router) write(ctx context.Context, x *execution) (won bool, err error) {
	if x.dispatched() {
		if err := r.admit(x); err != nil {
			return false, err
		}
	}
	if err := r.prepare(ctx, x); err != nil {
		return false, err
	}
	if x.dispatched() {
		x.mark(0)
	}
	c, err := x.entries()
	if err != nil {
		return false, err
	}
	// If the caller went away, its context would end the wait but not the write, and nobody would
	// execute the committed intent.
	res, err := r.cfg.Journal.Commit(context.WithoutCancel(ctx), c)
	if refusal := r.commitRefusal(err); refusal != nil {
		return false, refusal
	}
	if err != nil {
		if x.Verdict == intents.Deny {
			return false, err
		}
		// Whether it was written is unknown: never answered as a denial.
		return false, intents.Refuse(intents.InFlight, "", "it is not known whether the intent was accepted: ask for it by its intent_id")
	}
	switch res.Verdict {
	case storage.Won:
		x.position = res.Positions[0]
		return true, nil
	case storage.Lost:
		return false, r.lost(ctx, x, res.Winner)
	default:
		return false, errStale
	}
}

// fullRetry is when to try again while the disk is full: somebody has to free space.
const fullRetry = time.Minute

// commitRefusal is the refusal if the journal certainly wrote nothing, or nil for other errors.
func (r *Router) commitRefusal(err error) error {
	switch {
	case errors.Is(err, storage.ErrNotReady):
		if x := r.unready(); x != nil {
			return x
		}
		return intents.Refuse(intents.Overloaded, "", "no intent was taken") // it was unready a moment ago
	case errors.Is(err, storage.ErrFull):
		x := intents.Refuse(intents.Overloaded, "", "too little disk is free: no new intent is taken, what was accepted still ends")
		x.RetryAfter, x.Hint = fullRetry, "an operator makes room, or lowers free_disk_mb: writ admin storage status says how much is free"
		return x
	default:
		return nil
	}
}

// prepare completes a commit beyond the decision: a held intent takes its inputs with it, and an
// approval determines what happens to its held intent.
func (r *Router) prepare(ctx context.Context, x *execution) (err error) {
	switch {
	case x.Verdict == intents.Hold:
		if err := r.mayHold(x.env); err != nil {
			return err
		}
		return r.holdInputs(ctx, x)
	case x.Verdict == intents.Allow && x.env.Type() == state.TypeApprove:
		x.approval, err = r.applyApproval(ctx, &x.decision)
		return err
	default:
		return r.mayOpen(&x.decision, 0)
	}
}

// lost makes the intent a duplicate of the winner, or leaves a refusal that was recorded before
// unchanged.
func (r *Router) lost(ctx context.Context, x *execution, winner int64) error {
	x.record = nil
	if x.Verdict == intents.Deny {
		x.position = winner
		return nil
	}
	h, err := r.cfg.Journal.Holder(ctx, winner)
	if err != nil {
		return err
	}
	dup, err := r.readDuplicate(ctx, h)
	if err != nil {
		return err
	}
	if dup.decision.Fingerprint != x.Fingerprint {
		return errStale // decided again: stage 5 refuses it, and the refusal is recorded
	}
	x.duplicate = dup
	return nil
}

// entries builds the records of the commit.
func (x *execution) entries() (storage.Commit, error) {
	parts := map[string]json.RawMessage{}
	var err error
	put := func(name string, v any) {
		if err == nil {
			parts[name], err = json.Marshal(v)
		}
	}
	put(storage.PartEnvelope, x.env.Signed())
	if g := x.env.GrantToken(); g != "" {
		put(storage.PartGrant, g)
	}
	decision := x.Decision
	if decision.Verdict != intents.Deny {
		decision.Key = x.key.String()
	}
	if x.replay != nil && decision.Verdict != intents.Deny {
		put(storage.PartReplay, x.replay)
	}
	put(storage.PartDecision, decision)
	put(storage.PartInputs, x.inputs)
	summary, ok, failed := state.SummaryOf(x.env, x.Decision)
	if ok {
		put(storage.PartSummary, summary)
	}
	if err := errors.Join(err, failed); err != nil {
		return storage.Commit{}, err
	}
	rec := storage.NewRecord(storage.KindIntent, x.now, parts)
	x.record = &recordedRef{record: rec.Digest()}
	entry := storage.Entry{Record: rec, Take: true, Key: x.key, Holder: x.holder, Target: storage.NoPosition}
	c := storage.Commit{ID: rand.Text(), AsOf: x.view.AsOf(), Asserts: x.view.Asserts()}
	switch {
	case x.Verdict == intents.Deny:
		entry.Key, entry.Holder, entry.Refused = storage.RefusalKey(x.env.ID(), string(x.Code)), storage.NoPosition, true
		c.Entries = []storage.Entry{entry}
	case x.Verdict == intents.Hold:
		entry.Writes = x.inPlan().Writes()
		c.Entries = []storage.Entry{entry}
	case x.row.Executor == catalog.ExecutorRouter:
		entry.Writes = x.result.Writes
		out, err := x.routerOutcome()
		if err != nil {
			return c, err
		}
		c.Entries = []storage.Entry{entry, {Record: out, TargetPrevious: true, Target: storage.NoPosition}}
		more, err := x.endings()
		if err != nil {
			return c, err
		}
		c.Entries, c.Asserts = append(c.Entries, more...), x.view.Asserts()
		if x.approval != nil {
			c.Entries = append(c.Entries, x.approval.entries...)
		}
	default:
		entry.Open, entry.Writes = true, x.inPlan().Writes()
		c.Entries = []storage.Entry{entry}
	}
	return c, nil
}

// routerOutcome is the outcome record of an intent that takes effect at commit.
func (x *execution) routerOutcome() (storage.Record, error) {
	result, err := json.Marshal(x.result.Result)
	if err != nil {
		return storage.Record{}, err
	}
	out := intents.Outcome{Target: -1, Attempt: 1, Status: intents.Done, Code: intents.OK, Result: result}
	if x.release != nil {
		out.Target = x.release.position // the record before it is the release
	}
	if x.ofNode() {
		out.Outputs = x.view.OutputsOf(*x.task, result)
	}
	rec, err := storage.OutcomeRecord(x.now, out)
	x.record.outcome, x.record.out = rec.Digest(), &out
	return rec, err
}
