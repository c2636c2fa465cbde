package policies

import (
	"context"
	"slices"

	"aob.dev/writ/intents"
)

// Question is an order as stage 7 judges it: where it is decided, tried, released, replayed or
// tried on another policy.
type Question struct {
	Order *intents.Envelope
	Facts intents.Facts

	// Rules of the router's own that hold it (state.OwnRules), and whether it may be held at all:
	// an approval cannot wait for approvals.
	Rules    []intents.HoldRule
	Approval bool
	// Unsettled: nobody knows as yet what became of an earlier call of its skill; Hint says what to do.
	Unsettled bool
	Hint      string

	// Release: people have approved it, as its facts say, and Asked did not count among them. What it
	// was held for, and for how long, was judged before.
	Release bool
	Asked   intents.Asked
	// CanMeet says whether the people of the tenant can meet a rule; nil: it is not asked.
	CanMeet func(intents.HoldRule) bool
}

// Judge is stage 7, all of it: what the policy says of an order, and what the router's own rules
// make of that. A ttl_max that the order outlasts denies it by no rule. broken says that the policy
// failed or took too long. The error is the caller's context's, or ErrNotKept.
func (e *Engine) Judge(ctx context.Context, q Question) (res Result, broken bool, err error) {
	res, err = e.DecideOrder(ctx, q.Order, q.Facts)
	if err != nil {
		return res, false, err
	}
	if slices.Equal(res.PolicyIDs(), []string{IDEngine}) {
		return res, true, nil
	}
	res = res.Held(q.Rules)
	if q.Approval {
		res = res.Unheld()
	}
	if q.Release {
		res = res.Approved(q.Facts.Approvals, q.Asked)
	}
	if q.Unsettled {
		res = res.Unsettled(q.Hint)
	}
	if q.CanMeet != nil && !q.Release {
		res = res.Met(q.CanMeet)
	}
	if !q.Release && res.outlasts(q.Order.TTL()) {
		return Result{Outlived: true}, false, nil
	}
	return res, false, nil
}
