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

// settlement is what an approval does beyond being counted: the records of the
// held order that go into the same commit, and the order if it goes on.
type settlement struct {
	entries  []storage.Entry
	released *order // to be carried out after the commit; it has its slot
}

// settle says what an approval does to its held order. The last one that is
// needed releases it, after signer, user and grant were asked again and stages
// 6 and 7 judged it with today's roles and policy; an order so refused ends.
func (r *Router) settle(ctx context.Context, o *order) error {
	a, err := argsOf[catalog.Approve](o.env)
	if err != nil {
		return err
	}
	h, ok := o.view.HeldFor(o.env.Principal().Tenant, a)
	if !ok {
		return errStale
	}
	result, ok := o.effect.Result.(*catalog.ApproveResult)
	if !ok {
		return errors.New("settle: not an approval")
	}
	o.settled = &settlement{}
	if a.Decision != catalog.DecisionApprove {
		result.State, result.Approved = catalog.ApprovalEnded, h.People()
		why, instead := rejection(a, o.env.Principal().UserID)
		return r.endHeld(o, h, why, instead, result)
	}
	h = o.view.With(h, state.OrderOf(o.env, o.roles, o.now))
	result.State, result.Approved, result.Missing = catalog.ApprovalHeld, h.People(), h.Missing()
	if len(result.Missing) > 0 {
		return nil
	}
	return r.releaseHeld(ctx, o, h, result)
}

// rejection is how an order ends that somebody does not let go on as it is, and what its author
// is told to do instead; nil: nothing.
func rejection(a catalog.Approve, who string) (x *intents.Refusal, instead any) {
	because := ""
	if a.Reason != "" {
		because = ": " + a.Reason
	}
	switch a.Decision {
	case catalog.DecisionEdit:
		return intents.Refuse(intents.Changed, "", "edited by "+who+because), catalog.Changed{Args: a.Args}
	case catalog.DecisionRequestChanges:
		return intents.Refuse(intents.ApprovalRejected, "", "changes requested by "+who+because), catalog.ChangesRequested{By: who, Changes: a.Reason}
	default:
		return intents.Refuse(intents.ApprovalRejected, "", "rejected by "+who+because), nil
	}
}

// endHeld ends a held order without carrying it out. instead is the result that its author is told.
func (r *Router) endHeld(o *order, w state.Hold, x *intents.Refusal, instead any, result *catalog.ApproveResult) error {
	e, err := ending(w, x, instead, o.now)
	if err != nil {
		return err
	}
	result.State, result.Code, result.Reason, result.Missing = catalog.ApprovalEnded, x.Code, x.Reason, nil
	o.settled.entries = []storage.Entry{e}
	return nil
}

// releaseHeld judges a held order anew and, if nothing is against it, releases it.
func (r *Router) releaseHeld(ctx context.Context, o *order, w state.Hold, result *catalog.ApproveResult) error {
	h, err := r.rejudge(ctx, o, w)
	var refusal *intents.Refusal
	switch {
	case errors.As(err, &refusal) && refusal.Code == intents.ApprovalRequired:
		result.Missing = refusal.PolicyIDs // today's policy wants more
		return nil
	case errors.As(err, &refusal) && refusal.Code == intents.Overloaded:
		return refusal // no judgement: it waits on
	case errors.As(err, &refusal):
		return r.endHeld(o, w, refusal, nil, result)
	case err != nil:
		return err
	}
	if h.row.Executor != catalog.ExecutorRouter {
		if err := r.admit(h); err != nil {
			return err
		}
		o.settled.released = h
		h.mark(0)
	}
	rec, err := storage.RecordOf(storage.KindRelease, o.now, state.Release{Of: w.Position, By: o.decision.IntentID, Decision: h.decision, Facts: h.facts})
	if err != nil {
		return err
	}
	entry := storage.Entry{Record: rec, Of: w.Position, Holder: storage.Nobody, Touches: append(w.Touches(), h.inPlan().BreakerTouches(nil)...)}
	result.State, result.Missing = catalog.ApprovalReleased, nil
	if h.row.Executor == catalog.ExecutorRouter {
		out, err := r.routerOutcome(h)
		if err != nil {
			return err
		}
		entry.Touches = append(entry.Touches, h.effect.Touches...)
		o.settled.entries = []storage.Entry{entry, {Record: out, Of: w.Position, Holder: storage.Nobody}}
		more, err := r.endings(h)
		o.settled.entries = append(o.settled.entries, more...)
		return err
	}
	o.settled.entries = []storage.Entry{entry}
	return nil
}

// rejudge takes a held order through what is asked again at its release: its
// signer, grant and user, and stages 6 and 7. Its time to live and its task were
// judged when it was held.
func (r *Router) rejudge(ctx context.Context, o *order, w state.Hold) (*order, error) {
	h, err := r.reopenIn(ctx, o.view, storage.OpenOrder{Position: w.Position, Attempt: 1})
	if err != nil {
		return h, err
	}
	h.now, h.policy, h.released = o.now, o.policy, true
	if err := r.rbac(ctx, h); err != nil {
		return h, err
	}
	if p := h.pin; p != nil && p.Kind == "" { // that of an agent is of the plan, and stays
		if now, ok := o.view.Pin(w.Tenant, p.Skill); !ok || now.Digest != p.Digest || now.Effect != p.Effect { // the digest covers the server
			return h, intents.Refuse(intents.PolicyDenied, "/intent/args/skill", "the skill's pin is not the one that people were asked about")
		}
	}
	if h.row.Executor != h.decision.Executor || (h.row.Effect != catalog.EffectPin && string(h.row.Effect) != h.decision.Effect) {
		return h, intents.Refuse(intents.PolicyDenied, "/intent/type", "the catalog has another executor or effect than people were asked about")
	}
	h.facts.Approvals, h.facts.Now = w.By, intents.FormatTime(o.now)
	h.decision.Verdict, h.decision.Code = intents.Allow, intents.OK
	h.decision.Reason, h.decision.Hint, h.decision.PolicyIDs, h.decision.Approvers, h.decision.Hold = "", "", nil, nil, nil
	h.decision.PolicyDigest, h.decision.Catalog, h.decision.Directory = o.decision.PolicyDigest, o.decision.Catalog, o.decision.Directory
	if err := r.look(ctx, h); err != nil {
		return h, err
	}
	q := h.question()
	q.Asked = w.Asked
	res, broken, err := h.policy.Judge(ctx, q)
	if err != nil {
		return h, err
	}
	if broken {
		return h, intents.Refuse(intents.Overloaded, "", "the policy failed or took too long: approve again")
	}
	if x := res.Refusal(); x != nil {
		return h, x
	}
	h.decision.Obligations = res.Obligations
	if h.row.Executor == catalog.ExecutorRouter {
		if err := r.move(ctx, h); err != nil {
			return h, err
		}
		if err := r.mayErase(ctx, h); err != nil {
			return h, err
		}
		return h, r.provePush(ctx, h) // policies may come from a place by now
	}
	return h, nil
}

// dispatchAsync has a released order carried out while nobody waits for it. Crash in
// it: the order is open, and recovery ends it by its effect.
func (r *Router) dispatchAsync(ctx context.Context, o *order) {
	failpoint.Hit(failpoint.HoldReleased)
	r.running.Go(func() { r.carryOut(ctx, o) })
}
