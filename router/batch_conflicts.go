package router

import (
	"fmt"
	"slices"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
)

// fit checks that decided intents can be accepted together: none is refused or would need approval,
// no two share a key, none depends on what another changes, and none follows one that was submitted
// before and has not succeeded. The error is a *batchError.
func fit(decided []*decision) error {
	for i, d := range decided {
		if d.Verdict == intents.Deny {
			return denied(i, d, false)
		}
	}
	if !slices.ContainsFunc(decided, func(d *decision) bool { return d.duplicate == nil }) {
		return nil // all were submitted before: each is answered as it was
	}
	for i, d := range decided {
		if dup := d.duplicate; dup == nil {
			if err := d.fits(decided[:i]); err != nil {
				return &batchError{index: i, err: err}
			}
		} else if err := dup.unfinished(); err != nil {
			return &batchError{index: i, err: err, open: dup.holder.State == storage.StateOpen, position: dup.holder.Position}
		}
	}
	return nil
}

// fits refuses an intent that conflicts with those before it.
func (d *decision) fits(before []*decision) error {
	if d.Verdict == intents.Hold {
		return intents.Refuse(intents.MalformedArgs, "", "the intent needs approval, and a batch waits for nobody: submit it alone")
	}
	if d.env.Type() == state.TypeApprove {
		return intents.Refuse(intents.MalformedArgs, "", "an approval goes alone: submit it by itself")
	}
	for i, b := range before {
		if b.duplicate != nil {
			continue
		}
		if b.key == d.key {
			return intents.Refuse(intents.ConflictIdempotency, "/constraints/idempotency_key", fmt.Sprintf("intent %d of the batch has the same key", i))
		}
		if d.restsOn(b) {
			return intents.Refuse(intents.MalformedArgs, "", fmt.Sprintf("rests on what intent %d of the batch changes: submit it after that", i))
		}
		if d.result != nil && b.dispatched() && b.restsOn(d) { // d takes effect with the commit, b is executed after it
			return intents.Refuse(intents.MalformedArgs, "", fmt.Sprintf("changes what intent %d of the batch rests on, and would take effect before that is carried out: submit it after that", i))
		}
	}
	return nil
}

// restsOn reports whether the decision read something that b's commit changes. Among intents for
// executors only an equal one matters, which would have been refused as a repetition, and one that uses
// the same standing approval.
func (d *decision) restsOn(b *decision) bool {
	if d.dispatched() && b.dispatched() {
		return d.inputs.Standing != "" && d.inputs.Standing == b.inputs.Standing || d.Effect == string(catalog.Once) && d.env.Context().PlanID != "" && d.asksFor() == b.asksFor()
	}
	for _, s := range b.changes() {
		if d.view.HasRead(s) {
			return true
		}
	}
	return false
}

// changes are the subjects that the intent's commit writes.
func (d *decision) changes() []storage.Subject {
	if d.result != nil {
		return d.result.Writes
	}
	in := d.inPlan()
	return in.Writes()
}

// unfinished refuses to continue after an intent that has not succeeded.
func (d *duplicate) unfinished() error {
	switch {
	case d.holder.State == storage.StateHeld:
		return intents.Refuse(intents.InFlight, "", "the intent was submitted before and waits for approval")
	case d.outcome == nil:
		return intents.Refuse(intents.InFlight, "", "the intent was submitted before and is being carried out")
	case d.outcome.Status != intents.Done:
		return intents.Refuse(d.outcome.Code, "", "the intent was submitted before and is not done: "+d.outcome.Reason)
	default:
		return nil
	}
}
