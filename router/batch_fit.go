package router

import (
	"fmt"
	"slices"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
)

// fit says whether decided orders can be accepted together: none is refused, none
// would wait for people, no two share a key, none rests on what another one of
// them changes, and none comes after one that was submitted before and is not
// done. The error is a *batchError.
func (r *Router) fit(orders []*order) error {
	for i, o := range orders {
		if o.decision.Verdict == intents.Deny {
			return &batchError{index: i, err: denial(o.decision), answer: r.decided(o), recorded: o.duplicate == nil && !o.repeated}
		}
	}
	if !slices.ContainsFunc(orders, func(o *order) bool { return o.duplicate == nil }) {
		return nil // all were submitted before: each is answered as it was
	}
	for i, o := range orders {
		if d := o.duplicate; d == nil {
			if err := o.fits(orders[:i]); err != nil {
				return &batchError{index: i, err: err}
			}
		} else if err := d.unfinished(); err != nil {
			return &batchError{index: i, err: err, open: d.holder.State == storage.StateOpen, position: d.holder.Position}
		}
	}
	return nil
}

// fits refuses an order beside those before it.
func (o *order) fits(before []*order) error {
	if o.decision.Verdict == intents.Hold {
		return intents.Refuse(intents.MalformedArgs, "", "the order needs approval, and a batch waits for nobody: submit it alone")
	}
	if o.env.Type() == state.TypeApprove {
		return intents.Refuse(intents.MalformedArgs, "", "an approval goes alone: submit it by itself")
	}
	for i, b := range before {
		if b.duplicate != nil {
			continue
		}
		if b.key == o.key {
			return intents.Refuse(intents.ConflictIdempotency, "/constraints/idempotency_key", fmt.Sprintf("order %d of the batch has the same key", i))
		}
		if o.restsOn(b) {
			return intents.Refuse(intents.MalformedArgs, "", fmt.Sprintf("rests on what order %d of the batch changes: submit it after that", i))
		}
		if o.effect != nil && b.dispatched() && b.restsOn(o) { // o takes effect with the commit, b is carried out after it
			return intents.Refuse(intents.MalformedArgs, "", fmt.Sprintf("changes what order %d of the batch rests on, and would take effect before that is carried out: submit it after that", i))
		}
	}
	return nil
}

// restsOn says whether the decision relied on something that b changes when it
// is committed. Of orders that executors carry out only an equal one matters: it
// would have been refused as a repetition.
func (o *order) restsOn(b *order) bool {
	if o.dispatched() && b.dispatched() {
		return o.decision.Effect == string(catalog.Once) && o.env.Context().PlanID != "" && o.decision.Fingerprint == b.decision.Fingerprint
	}
	for _, s := range b.changes() {
		if o.view.Relies(s) {
			return true
		}
	}
	return false
}

// changes are the subjects that the order's commit touches.
func (o *order) changes() []storage.Subject {
	if o.effect != nil {
		return o.effect.Touches
	}
	return o.inPlan().Touches()
}

// unfinished refuses to go on after an order that is not done.
func (d *duplicate) unfinished() error {
	switch {
	case d.holder.State == storage.StateHeld:
		return intents.Refuse(intents.InFlight, "", "the order was submitted before and waits for approval")
	case d.outcome == nil:
		return intents.Refuse(intents.InFlight, "", "the order was submitted before and is being carried out")
	case d.outcome.Status != intents.Done:
		return intents.Refuse(d.outcome.Code, "", "the order was submitted before and is not done: "+d.outcome.Reason)
	default:
		return nil
	}
}

func denial(d intents.Decision) *intents.Refusal {
	return &intents.Refusal{Code: d.Code, Pointer: d.Pointer, Reason: d.Reason, PolicyIDs: d.PolicyIDs, Retryable: d.Retryable, Hint: d.Hint}
}
