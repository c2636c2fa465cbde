package router

import (
	"aob.dev/writ/intents"
)

// execution is a decision from its commit to its outcome: what its record says, and how it ends.
type execution struct {
	decision                 // the commit may add to the decision: a batch, the inputs of a held intent
	position int64           // of its record, or of an equal intent's record
	attempt  int             // of the dispatch
	slot     func()          // frees its slot; nil: it has none
	probe    int64           // round of its skill server's breaker in which it is a probe; 0: none
	record   *recordedRef    // what was written for the intent, for the receipt; nil: nothing, since a record says so already
	approval *approvalEffect // of an approval: what it does to its held intent
	images   []intents.Image // of the report
}

// recordedRef is what a receipt says of an intent's records.
type recordedRef struct {
	record, outcome string // digests
	out             *intents.Outcome
}

func newExecution(d *decision) *execution { return &execution{decision: *d, attempt: 1} }

// admit takes a slot for the run, or refuses: nothing queues without bound. Tasks' intents have
// slots of their own, so that work in progress can end.
func (r *Router) admit(x *execution) (err error) {
	slots := r.slots
	if x.task != nil {
		slots = r.childSlots
	}
	x.slot, err = take(slots, x.env, "intents")
	return err
}

// giveUp undoes what was taken for an execution that is not committed.
func (r *Router) giveUp(x *execution) {
	if x.approval != nil && x.approval.released != nil {
		r.returnProbe(x.approval.released)
	}
	r.returnProbe(x)
	r.leave(x)
}

// leave frees the slot of an intent that will not run (any more), and that of the intent that it
// releases.
func (r *Router) leave(x *execution) {
	if x.approval != nil && x.approval.released != nil {
		r.leave(x.approval.released)
		x.approval.released = nil
	}
	if x.slot != nil {
		x.slot()
		x.slot = nil
	}
}
