package router

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/bus"
	"aob.dev/writ/internal/failpoint"
	"aob.dev/writ/policies"
	"aob.dev/writ/storage"
)

// typeApprove is what people say about held orders with.
const typeApprove = "hitl.approve"

// legalApproval judges an approval on the fold: of an order of the tenant that
// is held, in time, by a person whom a rule of the hold accepts and who has not
// approved before. That the person is an approver at all is stage 6.
func (v *View) legalApproval(e *intents.Envelope, now time.Time) (effect, error) {
	a, err := argsOf[catalog.Approve](e)
	if err != nil {
		return effect{}, err
	}
	if a.RunID != "" {
		return effect{}, illegal("/intent/args/run_id", "no such run of this tenant")
	}
	pr := e.Principal()
	w, ok := v.held(pr.Tenant, a.IntentID)
	if !ok {
		return effect{}, illegal("/intent/args/intent_id", "no held order of this tenant has this intent_id")
	}
	if !now.Before(w.deadline) {
		return effect{}, illegal("/intent/args/intent_id", "the approval's deadline has passed")
	}
	if err := present(e, now); err != nil {
		return effect{}, err
	}
	who, err := v.approver(e)
	if err != nil {
		return effect{}, err
	}
	if !slices.ContainsFunc(w.terms.Rules, func(r intents.HoldRule) bool { return r.Accepts(who, w.asked) }) {
		return effect{}, intents.Refuse(intents.RBACForbidden, "/actor/user_id", "not one of those who may approve this order, or through the API key of the one who asked")
	}
	if a.Decision == catalog.DecisionApprove {
		if err := w.more(who); err != nil {
			return effect{}, err
		}
	}
	return effect{&catalog.ApproveResult{IntentID: a.IntentID}, w.touches()}, nil
}

// present: the approver has authenticated just now, for this and nothing else.
func present(e *intents.Envelope, now time.Time) error {
	g := e.Grant()
	switch {
	case g == nil:
		return nil // the operator's own key
	case g.Standing():
		return intents.Refuse(intents.GrantInvalid, "/actor/grant", "a standing grant approves nothing")
	case now.Sub(time.Unix(g.IssuedAt, 0)) > intents.MaxApprovalAge:
		return intents.Refuse(intents.GrantInvalid, "/actor/grant", "an approval needs a grant of the last five minutes")
	case len(g.Act.AMR) == 0:
		return intents.Refuse(intents.GrantInvalid, "/actor/grant", "the grant does not say how the approver was authenticated")
	}
	return nil
}

// more refuses a yes that counts for no rule beside those that were said before.
func (w waiting) more(who intents.Approver) error {
	if slices.ContainsFunc(w.by, func(x policies.Approval) bool { return x.UserID == who.User }) {
		return illegal("/intent/args/intent_id", "you have approved it already: each person counts once")
	}
	with := append(slices.Clone(w.by), policies.Approval{UserID: who.User, Key: who.Key, Roles: who.Roles})
	for _, rule := range w.terms.Rules {
		if policies.Counted(rule, with, w.asked) > policies.Counted(rule, w.by, w.asked) {
			return nil
		}
	}
	return intents.Refuse(intents.RBACForbidden, "/actor/user_id", "somebody has approved it through the same API key: for four eyes all that come through it are one")
}

// approver is the signer of an approval, with the roles of today.
func (v *View) approver(e *intents.Envelope) (intents.Approver, error) {
	pr := e.Principal()
	g := e.Grant()
	if g == nil {
		roles, _, _ := v.UserRoles(pr.Tenant, pr.UserID) // whether there is such a user is stage 6
		return intents.Approver{User: pr.UserID, Roles: roles}, nil
	}
	roles, disabled := v.RolesNow(g)
	if disabled {
		return intents.Approver{}, intents.Refuse(intents.RBACForbidden, "/actor/user_id", "the approver is disabled")
	}
	return intents.Approver{User: pr.UserID, Key: bus.KeyOfClient(g.Act.Client), Roles: roles}, nil
}

// touches are what every change to a hold changes.
func (w waiting) touches() []storage.Subject {
	out := []storage.Subject{subjectOrder(w.decision.IntentID)}
	if w.ctx.PlanID != "" {
		out = append(out, subjectPlan(w.tenant, w.ctx.PlanID))
	}
	return out
}

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
	w, ok := o.view.held(o.env.Principal().Tenant, a.IntentID)
	if !ok {
		return errStale
	}
	result, ok := o.effect.result.(*catalog.ApproveResult)
	if !ok {
		return errors.New("settle: not an approval")
	}
	o.settled = &settlement{}
	if a.Decision != catalog.DecisionApprove {
		result.State, result.Approved = catalog.ApprovalEnded, w.people()
		return r.endHeld(o, w, intents.Refuse(intents.ApprovalRejected, "", saidNo(a, o.env.Principal().UserID)), result)
	}
	g := approval{user: o.env.Principal().UserID, kid: o.env.Signer().KID, role: o.env.Signer().Role, roles: o.roles, at: o.now}
	if grant := o.env.Grant(); grant != nil {
		g.client, g.minted = grant.Act.Client, mintedBy(o.env.GrantToken(), grant)
	}
	w.approvals = append(w.approvals, g)
	w = o.view.counted(w)
	result.State, result.Approved, result.Missing = catalog.ApprovalHeld, w.people(), w.missing()
	if len(result.Missing) > 0 {
		return nil
	}
	return r.releaseHeld(ctx, o, w, result)
}

// counted is a hold with its approvals counted anew.
func (v *View) counted(w waiting) waiting {
	v.d.mu.RLock()
	defer v.d.mu.RUnlock()
	return v.waiting(&w.hold)
}

func saidNo(a catalog.Approve, who string) string {
	if a.Decision == catalog.DecisionRequestChanges {
		return "changes requested by " + who + ": " + a.Reason
	}
	return "rejected by " + who + ": " + a.Reason
}

// endHeld ends a held order without carrying it out.
func (r *Router) endHeld(o *order, w waiting, x *intents.Refusal, result *catalog.ApproveResult) error {
	e, err := ending(w, x, o.now)
	if err != nil {
		return err
	}
	result.State, result.Code, result.Reason, result.Missing = catalog.ApprovalEnded, x.Code, x.Reason, nil
	o.settled.entries = []storage.Entry{e}
	return nil
}

// releaseHeld judges a held order anew and, if nothing is against it, releases it.
func (r *Router) releaseHeld(ctx context.Context, o *order, w waiting, result *catalog.ApproveResult) error {
	h, err := r.rejudge(ctx, o, w)
	var refusal *intents.Refusal
	switch {
	case errors.As(err, &refusal) && refusal.Code == intents.ApprovalRequired:
		result.Missing = refusal.PolicyIDs // today's policy wants more
		return nil
	case errors.As(err, &refusal) && refusal.Code == intents.Overloaded:
		return refusal // no judgement: it waits on
	case errors.As(err, &refusal):
		return r.endHeld(o, w, refusal, result)
	case err != nil:
		return err
	}
	if h.row.Executor != catalog.ExecutorRouter {
		select {
		case r.slotsFor(h) <- struct{}{}:
		default:
			return intents.Refuse(intents.Overloaded, "", "too many orders are being carried out")
		}
		o.settled.released = h
	}
	body, err := json.Marshal(Release{Of: w.position, By: o.env.ID(), Decision: h.decision, Facts: h.facts})
	if err != nil {
		return err
	}
	rec := storage.NewRecord(storage.KindRelease, o.now, map[string]json.RawMessage{storage.PartRelease: body})
	entry := storage.Entry{Record: rec, Of: w.position, Holder: storage.Nobody, Touches: w.touches()}
	result.State, result.Missing = catalog.ApprovalReleased, nil
	if h.row.Executor == catalog.ExecutorRouter {
		out, err := r.routerOutcome(h)
		if err != nil {
			return err
		}
		entry.Touches = append(entry.Touches, h.effect.touches...)
		o.settled.entries = []storage.Entry{entry, {Record: out, Of: w.position, Holder: storage.Nobody}}
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
func (r *Router) rejudge(ctx context.Context, o *order, w waiting) (*order, error) {
	h, err := r.reopenIn(ctx, o.view, storage.OpenOrder{Position: w.position, Attempt: 1})
	if err != nil {
		return h, err
	}
	h.now, h.policy, h.released = o.now, o.policy, true
	if err := r.rbac(ctx, h); err != nil {
		return h, err
	}
	if p := h.pin; p != nil {
		if now, ok := o.view.Pin(w.tenant, p.Skill); !ok || now.Digest != p.Digest || now.Effect != p.Effect { // the digest covers the server
			return h, intents.Refuse(intents.PolicyDenied, "/intent/args/skill", "the skill's pin is not the one that people were asked about")
		}
	}
	if h.row.Executor != h.decision.Executor || (h.row.Effect != catalog.EffectPin && string(h.row.Effect) != h.decision.Effect) {
		return h, intents.Refuse(intents.PolicyDenied, "/intent/type", "the catalog says another executor or effect than people were asked about")
	}
	h.facts.Approvals, h.facts.Now = w.by, intents.FormatTime(o.now)
	h.decision.Verdict, h.decision.Code = intents.Allow, intents.OK
	h.decision.Reason, h.decision.Hint, h.decision.PolicyIDs, h.decision.Approvers, h.decision.Hold = "", "", nil, nil, nil
	h.decision.PolicyDigest, h.decision.Catalog, h.decision.Directory = o.decision.PolicyDigest, o.decision.Catalog, o.decision.Directory
	res, err := h.policy.DecideOrder(ctx, h.env, h.facts)
	if err != nil {
		return h, err
	}
	if slices.Equal(res.PolicyIDs(), []string{policies.IDEngine}) {
		return h, intents.Refuse(intents.Overloaded, "", "the policy failed or took too long: approve again")
	}
	res = res.Approved(w.by, w.asked)
	if x := res.Refusal(); x != nil {
		return h, x
	}
	h.decision.Obligations = res.Obligations
	if h.row.Executor == catalog.ExecutorRouter {
		if err := r.move(h); err != nil {
			return h, err
		}
		if err := r.mayErase(ctx, h); err != nil {
			return h, err
		}
		return h, r.provePush(ctx, h) // policies may come from a place by now
	}
	return h, nil
}

// goOn dispatches a released order. Crash in it: the order is open, and
// recovery ends it by its effect.
func (r *Router) goOn(ctx context.Context, o *order) {
	failpoint.Hit(failpoint.HoldReleased)
	ctx = context.WithoutCancel(ctx)
	r.running.Add(1)
	go func() {
		defer r.running.Done()
		defer func() { <-r.slotsFor(o) }()
		r.finish(ctx, o, r.dispatch(ctx, o))
	}()
}

// holdFor says in a decision what the hold waits for.
func holdFor(d *intents.Decision, res policies.Result, now time.Time) {
	d.Approvers, d.Hold = res.Approvers(), res.HoldAt(now)
}
