package router

import (
	"context"
	"errors"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/failpoint"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
)

// approvalEffect is what an approval does besides being counted: the records of the held intent
// that go into the same commit, and the intent if it continues.
type approvalEffect struct {
	entries  []storage.Entry
	released *execution // to be executed after the commit; it has its slot
}

// applyApproval determines what an approval does to its held intent. The last approval needed
// releases it, after signer, user and grant are checked again and stages 6 and 7 judge it with
// today's roles and policy. An intent refused there ends.
func (r *Router) applyApproval(ctx context.Context, d *decision) (*approvalEffect, error) {
	a, err := argsOf[catalog.Approve](d.env)
	if err != nil {
		return nil, err
	}
	if a.Decision == catalog.DecisionWithdraw {
		return nil, nil
	}
	h, ok := d.view.HeldFor(d.env.Principal().Tenant, a)
	if !ok {
		return nil, errStale
	}
	result, ok := d.result.Result.(*catalog.ApproveResult)
	if !ok {
		return nil, errors.New("settle: not an approval")
	}
	if a.Decision != catalog.DecisionApprove {
		result.State, result.Approved = catalog.ApprovalEnded, h.People()
		why, instead := rejection(a, d.env.Principal().UserID)
		return endHeld(d, h, why, instead, result)
	}
	h = d.view.With(h, d.intent())
	result.State, result.Approved, result.Missing = catalog.ApprovalPending, h.People(), h.Missing()
	if len(result.Missing) > 0 {
		return nil, nil
	}
	return r.releaseHeld(ctx, d, h, result)
}

// rejection is the refusal of an intent that an approver rejects or changes, and what its author
// should do instead; nil: nothing.
func rejection(a catalog.Approve, who string) (x *intents.Refusal, instead any) {
	because := ""
	if a.Reason != "" {
		because = ": " + a.Reason
	}
	switch a.Decision {
	case catalog.DecisionEdit:
		return intents.Refuse(intents.Changed, "", "edited by "+who+because), catalog.ChangeResult{Args: a.Args}
	case catalog.DecisionRequestChanges:
		return intents.Refuse(intents.ApprovalRejected, "", "changes requested by "+who+because), catalog.ChangesRequested{By: who, Changes: a.Reason}
	default:
		return intents.Refuse(intents.ApprovalRejected, "", "rejected by "+who+because), nil
	}
}

// endHeld ends a held intent without executing it. instead is the result for its author.
func endHeld(by *decision, w state.Hold, x *intents.Refusal, instead any, result *catalog.ApproveResult) (*approvalEffect, error) {
	e, err := ending(w, x, instead, by.now)
	if err != nil {
		return nil, err
	}
	result.State, result.Code, result.Reason, result.Missing = catalog.ApprovalEnded, x.Code, x.Reason, nil
	return &approvalEffect{entries: []storage.Entry{e}}, nil
}

// releaseHeld judges a held intent again and releases it if nothing forbids it. by is the decision
// that allows it to continue, such as the last approval; nil: it stays held.
func (r *Router) releaseHeld(ctx context.Context, by *decision, w state.Hold, result *catalog.ApproveResult) (*approvalEffect, error) {
	h, err := r.rejudge(ctx, by, w)
	var refusal *intents.Refusal
	switch {
	case errors.As(err, &refusal) && refusal.Code == intents.ApprovalRequired:
		result.Missing = refusal.PolicyIDs // today's policy requires more
		return nil, nil
	case errors.As(err, &refusal) && refusal.Code == intents.Overloaded:
		return nil, refusal // no judgement: it stays held
	case errors.As(err, &refusal):
		return endHeld(by, w, refusal, nil, result)
	case err != nil:
		return nil, err
	}
	if sick := r.askBreaker(ctx, h, nil); sick != nil {
		return endHeld(by, w, sick, nil, result)
	}
	rec, err := storage.RecordOf(storage.KindRelease, by.now, state.Release{Target: w.Position, By: by.IntentID, Decision: h.Decision, Inputs: h.inputs})
	if err != nil {
		return nil, err
	}
	entry := storage.Entry{Record: rec, Target: w.Position, Holder: storage.NoPosition, Writes: w.Writes()}
	result.State, result.Missing = catalog.ApprovalReleased, nil
	if h.dispatched() {
		if err := r.admit(h); err != nil {
			r.giveUp(h)
			return nil, err
		}
		return &approvalEffect{[]storage.Entry{entry}, h}, nil
	}
	out, err := h.routerOutcome()
	if err != nil {
		return nil, err
	}
	entry.Writes = append(entry.Writes, h.result.Writes...)
	more, err := h.endings()
	return &approvalEffect{entries: append([]storage.Entry{entry, {Record: out, Target: w.Position, Holder: storage.NoPosition}}, more...)}, err
}

// rejudge repeats the checks of a held intent at its release: its signer, grant and user, and
// stages 6 and 7. Its time to live and its task were judged when it was held.
func (r *Router) rejudge(ctx context.Context, by *decision, w state.Hold) (*execution, error) {
	h, err := r.reopenIn(ctx, by.view, storage.OpenIntent{Position: w.Position, Attempt: 1})
	if err != nil {
		return h, err
	}
	h.now, h.policy, h.release = by.now, by.policy, &release{w.Position, w.Requesters}
	if err := r.rbac(ctx, &h.decision); err != nil {
		return h, err
	}
	if p := h.pin; p != nil && p.Kind == "" { // an agent's pin belongs to the plan, and stays
		if now, ok := by.view.Pin(w.Tenant, p.Skill); !ok || now.Digest != p.Digest || now.Effect != p.Effect { // the digest covers the server
			return h, intents.Refuse(intents.PolicyDenied, "/intent/args/skill", "the skill's pin is not the one that people were asked about")
		}
	}
	if h.row.Executor != h.Executor || (h.row.Effect != catalog.EffectPin && string(h.row.Effect) != h.Effect) {
		return h, intents.Refuse(intents.PolicyDenied, "/intent/type", "the catalog has another executor or effect than people were asked about")
	}
	h.inputs.Approvals, h.inputs.Now = w.By, intents.FormatTime(by.now)
	h.Verdict, h.Code = intents.Allow, intents.OK
	h.Reason, h.Hint, h.PolicyIDs, h.Approvers, h.Hold = "", "", nil, nil, nil
	h.PolicyDigest, h.Catalog, h.Directory = by.PolicyDigest, by.Catalog, by.Directory
	if err := r.look(ctx, &h.decision); err != nil {
		return h, err
	}
	res, broken, err := h.policy.Judge(ctx, h.question())
	if err != nil {
		return h, err
	}
	if broken {
		return h, intents.Refuse(intents.Overloaded, "", "the policy failed or took too long: approve again")
	}
	if x := res.Refusal(); x != nil {
		return h, x
	}
	h.Obligations = res.Obligations
	if h.row.Executor == catalog.ExecutorRouter {
		if err := r.transition(ctx, &h.decision); err != nil {
			return h, err
		}
		if err := r.mayErase(ctx, &h.decision); err != nil {
			return h, err
		}
		return h, r.provePush(ctx, &h.decision) // policies may come from a place by now
	}
	return h, nil
}

// dispatchAsync has a released intent executed while nobody waits for it. Crash: the intent is
// open, and recovery ends it by its effect.
func (r *Router) dispatchAsync(ctx context.Context, x *execution) {
	failpoint.Hit(failpoint.HoldReleased)
	r.running.Go(func() { r.carryOut(ctx, x) })
}
