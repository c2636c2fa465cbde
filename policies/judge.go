package policies

import (
	"context"
	"slices"

	"aob.dev/writ/intents"
)

// Judge is all of stage 7: the policy's result for an intent, and what the router's own rules
// make of it. A ttl_max that the intent outlasts denies it by no rule. broken reports that the
// policy failed or took too long. The error is the caller's context's, or ErrNotKept.
func (e *Engine) Judge(ctx context.Context, q intents.Question) (res Result, broken bool, err error) {
	standing := q.Inputs.Standing != "" && !q.Release
	if standing { // rules that read approvals must not say less because of it
		held := q
		held.Inputs.Standing, held.Inputs.Approvals = "", nil
		if res, broken, err = e.Judge(ctx, held); err != nil || broken || !res.mayStand(q) {
			return res, broken, err
		}
	}
	res, err = e.DecideIntent(ctx, q.Envelope, q.Inputs)
	if err != nil {
		return res, false, err
	}
	if slices.Equal(res.PolicyIDs(), []string{IDEngine}) {
		return res, true, nil
	}
	res = res.withoutUser(q.Envelope.Principal().UserID)
	if q.CanMeet != nil {
		res = res.withoutUnmet(q.CanMeet)
	}
	res = res.WithHolds(q.Rules)
	if q.Approval {
		res = res.Unheld()
	}
	if q.Release || standing && res.mayStand(q) {
		res = res.WithApprovals(q.Inputs.Approvals, q.Requesters())
	}
	if q.UnknownOutcome {
		res = res.HoldForOutcome(q.Hint)
	}
	if q.CanMeet != nil && !q.Release {
		res = res.DenyUnmet(q.CanMeet)
	}
	if !q.Release && res.outlasts(q.Envelope.TTL()) {
		return Result{Outlived: true}, false, nil
	}
	return res, false, nil
}
