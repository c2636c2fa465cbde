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

// errStale: something that the decision relied on has changed.
var errStale = errors.New("router: decide again")

// commit is stage 8: one durable compare-and-set before anything happens. The
// loser is a duplicate; what cannot be committed is not accepted. A denial is a
// commit that takes no key, once per intent and code. It asserts what it rests on, as any
// decision does: who reads the record judges it by the keys and grants at its position.
//
// Crash before it: nothing is left. After it: an allowed order is open and
// recovery ends it; an order of the router has its effect and its outcome.
func (r *Router) commit(ctx context.Context, o *order) (err error) {
	if o.duplicate != nil {
		return nil
	}
	won := false
	defer func() {
		if !won {
			r.release(o)
		}
	}()
	if o.decision.Verdict == intents.Allow && o.row.Executor != catalog.ExecutorRouter {
		if err := r.admit(o); err != nil {
			return err
		}
	}
	if err := r.prepare(ctx, o); err != nil {
		return err
	}
	if o.dispatched() {
		o.mark(0)
	}
	c, err := r.entries(o)
	if err != nil {
		return err
	}
	// If the caller went away, its context would end the wait but not the write, and
	// nobody would carry out the committed order.
	res, err := r.cfg.Journal.Commit(context.WithoutCancel(ctx), c)
	if x := r.notTaken(err); x != nil {
		return x
	}
	if err != nil {
		if o.decision.Verdict == intents.Deny {
			return err
		}
		// Whether it was written is unknown: never answered as a denial.
		return intents.Refuse(intents.InFlight, "", "it is not known whether the order was accepted: ask for it by its intent_id")
	}
	switch res.Verdict {
	case storage.Won:
		o.position, won = res.Positions[0], true
		return nil
	case storage.Lost:
		return r.lost(ctx, o, res.Winner)
	default:
		return errStale
	}
}

// fullRetry is when to try again where the disk is full: somebody has to make room.
const fullRetry = time.Minute

// notTaken is the refusal where the journal surely took nothing; nil for others.
func (r *Router) notTaken(err error) error {
	switch {
	case errors.Is(err, storage.ErrNotReady):
		if x := r.unready(); x != nil {
			return x
		}
		return intents.Refuse(intents.Overloaded, "", "no order was taken") // it was, a moment ago
	case errors.Is(err, storage.ErrFull):
		x := intents.Refuse(intents.Overloaded, "", "too little disk is free: no new order is taken, what was accepted still ends")
		x.RetryAfter, x.Hint = fullRetry, "an operator makes room, or lowers free_disk_mb: writ storage status says how much is free"
		return x
	default:
		return nil
	}
}

// prepare does what a commit needs beyond the decision: an order that is held
// takes its inputs with it, and an approval says what becomes of its order.
func (r *Router) prepare(ctx context.Context, o *order) error {
	switch {
	case o.decision.Verdict == intents.Hold:
		if err := r.mayHold(o); err != nil {
			return err
		}
		return r.holdInputs(ctx, o)
	case o.decision.Verdict == intents.Allow && o.env.Type() == state.TypeApprove:
		return r.settle(ctx, o)
	default:
		return r.mayOpen(o, 0)
	}
}

// lost makes the order a duplicate of the winner, or leaves a refusal that was
// recorded before as it is.
func (r *Router) lost(ctx context.Context, o *order, winner int64) error {
	if o.decision.Verdict == intents.Deny {
		o.position, o.repeated = winner, true
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
	if dup.decision.Fingerprint != o.decision.Fingerprint {
		return errStale // decided again: stage 5 refuses it, and the refusal is recorded
	}
	o.duplicate = dup
	return nil
}

// entries builds the records of the commit.
func (r *Router) entries(o *order) (storage.Commit, error) {
	parts := map[string]json.RawMessage{}
	var err error
	put := func(name string, v any) {
		if err == nil {
			parts[name], err = json.Marshal(v)
		}
	}
	put(storage.PartOrder, o.env.Sealed())
	if g := o.env.GrantToken(); g != "" {
		put(storage.PartGrant, g)
	}
	decision := o.decision
	if decision.Verdict != intents.Deny {
		decision.Key = o.key.String()
	}
	if o.replay != nil && decision.Verdict != intents.Deny {
		put(storage.PartReplay, o.replay)
	}
	put(storage.PartDecision, decision)
	put(storage.PartFacts, o.facts)
	summary, ok, failed := state.SummaryOf(o.env, o.decision)
	if ok {
		put(storage.PartSummary, summary)
	}
	if err := errors.Join(err, failed); err != nil {
		return storage.Commit{}, err
	}
	rec := storage.NewRecord(storage.KindOrder, o.now, parts)
	o.record.record = rec.Digest()
	entry := storage.Entry{Record: rec, Take: true, Key: o.key, Holder: o.holder, Of: storage.Nobody}
	c := storage.Commit{ID: rand.Text(), Seen: o.view.Seen(), Asserts: o.view.Asserts()}
	switch {
	case o.decision.Verdict == intents.Deny:
		entry.Key, entry.Holder, entry.Refused = storage.RefusalKey(o.env.ID(), string(o.decision.Code)), storage.Nobody, true
		c.Entries = []storage.Entry{entry}
	case o.decision.Verdict == intents.Hold:
		entry.Touches = o.inPlan().Touches()
		c.Entries = []storage.Entry{entry}
	case o.row.Executor == catalog.ExecutorRouter:
		entry.Touches = o.effect.Touches
		out, err := r.routerOutcome(o)
		if err != nil {
			return c, err
		}
		c.Entries = []storage.Entry{entry, {Record: out, OfPrevious: true, Of: storage.Nobody}}
		more, err := r.endings(o)
		if err != nil {
			return c, err
		}
		c.Entries, c.Asserts = append(c.Entries, more...), o.view.Asserts()
		if o.settled != nil {
			c.Entries = append(c.Entries, o.settled.entries...)
		}
	default:
		entry.Open, entry.Touches = true, o.inPlan().Touches()
		c.Entries = []storage.Entry{entry}
	}
	return c, nil
}

// inPlan is the order as far as state asks for what it changes of a plan.
func (o *order) inPlan() *state.Order {
	out := &state.Order{
		Type: o.env.Type(), Context: o.env.Context(), Tenant: o.env.Principal().Tenant,
		Signer: o.env.Signer().Role, Decision: o.decision, Now: o.now, Breaker: o.facts.Breaker, Node: o.ofNode(),
	}
	if o.pin != nil {
		out.Skill = o.pin.Skill
	}
	return out
}

// ofNode says whether it is the order of a node of a run.
func (o *order) ofNode() bool {
	return o.task != nil && o.task.NodesOwn(o.env.Type(), o.row.Executor)
}

// routerOutcome is the outcome record of an order that takes effect at commit.
func (r *Router) routerOutcome(o *order) (storage.Record, error) {
	result, err := json.Marshal(o.effect.Result)
	if err != nil {
		return storage.Record{}, err
	}
	out := intents.Outcome{Of: -1, Attempt: 1, Status: intents.Done, Code: intents.OK, Result: result}
	if o.released {
		out.Of = o.position // the record before it is the release
	}
	if o.ofNode() {
		out.Outputs = o.view.OutputsOf(*o.task, result)
	}
	rec, err := storage.OutcomeRecord(o.now, out)
	o.record.outcome, o.record.out = rec.Digest(), &out
	return rec, err
}

// admit takes a slot for the run, or refuses: nothing queues without bound, and
// tasks' orders have slots of their own, so that work begun can end.
func (r *Router) admit(o *order) error {
	slots := r.slots
	if o.task != nil {
		slots = r.childSlots
	}
	err := slots.take(o.env.Principal().Tenant, "orders")
	if err == nil {
		o.slot = slots
	}
	return err
}

// release gives the slot back of an order that will not run (any more), and that of the one
// that it releases.
func (r *Router) release(o *order) {
	if o.settled != nil && o.settled.released != nil {
		r.release(o.settled.released)
		o.settled.released = nil
	}
	if o.slot != nil {
		o.slot.give(o.env.Principal().Tenant)
		o.slot = nil
	}
}
