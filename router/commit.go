package router

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"math"
	"slices"
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
	return x, r.write(ctx, []*execution{x})
}

// write commits executions together: a batch's, or one. They take one slot, because the intents of a
// batch run one after the other; it is freed unless the commit wins.
func (r *Router) write(ctx context.Context, all []*execution) (err error) {
	won := false
	defer func() {
		for _, x := range all {
			if !won {
				r.giveUp(x)
			}
		}
	}()
	if slot := firstDispatched(all); slot != nil {
		if err := r.admit(slot); err != nil {
			return err
		}
	}
	c := storage.Commit{ID: rand.Text(), AsOf: math.MaxInt64}
	read, opened := map[storage.Subject]int64{}, 0
	first := make([]int, len(all)) // index of each intent's record in the commit
	for i, x := range all {
		first[i] = len(c.Entries)
		if x.Batch != nil {
			x.Batch.Offset, x.Batch.Size = int64(first[i]), len(all)
		}
		if err := r.policyRecorded(ctx, &x.decision); err != nil {
			return err
		}
		if err := r.prepare(ctx, x, opened); err != nil {
			return x.inBatch(err)
		}
		if sick := r.askBreaker(ctx, x, all[:i]); sick != nil {
			if x.Batch != nil {
				return x.inBatch(sick)
			}
			r.leave(x)
			x.Obligations = nil
			x.refuse(sick) // and that is recorded
		}
		if state.Opens(x.env.Type()) {
			opened++
		}
		one, err := x.entries()
		if err != nil {
			return err
		}
		c.AsOf, c.Entries = min(c.AsOf, one.AsOf), append(c.Entries, one.Entries...)
		for _, a := range one.Asserts {
			if at, ok := read[a.Subject]; ok && at != a.At {
				return errStale // it changed between two of the decisions
			} else if !ok {
				read[a.Subject] = a.At
				c.Asserts = append(c.Asserts, a)
			}
		}
	}
	// If the caller went away, its context would end the wait but not the write, and nobody would
	// execute the committed intents.
	res, err := r.cfg.Journal.Commit(context.WithoutCancel(ctx), c)
	if refusal := r.commitRefusal(err); refusal != nil {
		return refusal
	}
	if err != nil {
		if all[0].Verdict == intents.Deny {
			return err
		}
		// Whether it was written is unknown: never answered as a denial.
		return unknownAcceptance()
	}
	switch {
	case res.Verdict == storage.Won:
		won = true
		for i, x := range all {
			x.position = res.Positions[first[i]]
		}
		r.shadow.offer(all)
		return nil
	case res.Verdict == storage.Lost && all[0].Batch == nil:
		return r.lost(ctx, all[0], res.Winner)
	default:
		return errStale // an intent of a batch that lost a key finds the key's holder when it is decided again
	}
}

// unknownAcceptance is the refusal of an intent that may have been accepted.
func unknownAcceptance() error {
	return intents.Refuse(intents.InFlight, "", "it is not known whether it was accepted: send it again, or ask for it by its intent_id")
}

func firstDispatched(all []*execution) *execution {
	if i := slices.IndexFunc(all, func(x *execution) bool { return x.dispatched() }); i >= 0 {
		return all[i]
	}
	return nil
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
// approval determines what happens to its held intent. opened are the plans that the commit opens
// before it.
func (r *Router) prepare(ctx context.Context, x *execution, opened int) (err error) {
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
		return r.mayOpen(&x.decision, opened)
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
	if dup.conflict(x.env) != nil {
		return errStale // decided again: stage 5 refuses it, and the refusal is recorded
	}
	x.duplicate = dup
	return nil
}

// entries builds the records of one execution for its commit.
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
	if len(x.env.Transient()) > 0 && decision.Verdict != intents.Deny {
		put(storage.PartTransient, x.env.Transient())
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
	entry := storage.Entry{Record: rec, Take: true, Key: x.key, Holder: x.holder, Target: storage.NoPosition, Decision: &decision}
	if ok {
		entry.Summary = &summary
	}
	c := storage.Commit{AsOf: x.view.AsOf(), Asserts: x.view.Asserts()}
	switch {
	case x.Verdict == intents.Deny:
		entry.Key, entry.Holder, entry.Refused = storage.RefusalKey(x.env.ID(), string(x.Code)), storage.NoPosition, true
		c.Entries = []storage.Entry{entry}
	case x.Verdict == intents.Hold:
		in := x.inPlan()
		entry.Writes = in.Writes()
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
		in := x.inPlan()
		entry.Open, entry.Writes = true, in.Writes()
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
