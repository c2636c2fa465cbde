package policies

import (
	"slices"
	"time"

	"aob.dev/writ/intents"
)

func (r Rule) within() time.Duration {
	if r.WithinSec == 0 {
		return intents.DefaultHold
	}
	return time.Duration(r.WithinSec) * time.Second
}

func (r Rule) holdRule() intents.HoldRule {
	return intents.HoldRule{
		ID: r.ID, Reason: r.Reason, Approvers: r.Approvers, Roles: r.Roles, Count: r.Count, FourEyes: r.FourEyes, InPerson: r.InPerson, Mask: r.Mask,
	}
}

// HoldAt is what an intent that is held at a time waits for; its deadline is the nearest of its
// rules' deadlines. Nil unless the verdict is hold.
func (r Result) HoldAt(now time.Time) *intents.HoldTerms {
	if r.Verdict() != intents.Hold {
		return nil
	}
	within := intents.MaxHold
	h := &intents.HoldTerms{}
	for _, rule := range r.Hold {
		within = min(within, rule.within())
		h.Rules = append(h.Rules, rule.holdRule())
	}
	h.Deadline = intents.FormatTime(now.Add(within))
	return h
}

// WithApprovals is the result after approvals: rules that they satisfy no longer hold, and what
// no rule holds any more is allowed. asked are those who requested the intent.
func (r Result) WithApprovals(by []intents.Approval, asked intents.Requesters) Result {
	if r.Verdict() != intents.Hold {
		return r
	}
	r.Hold = slices.DeleteFunc(slices.Clone(r.Hold), func(rule Rule) bool { return rule.holdRule().Satisfied(by, asked) })
	r.Allow = len(r.Hold) == 0
	return r
}

// mayStand reports whether a standing approval satisfies all that holds the intent.
func (r Result) mayStand(q intents.Question) bool {
	return r.Verdict() == intents.Hold && !slices.ContainsFunc(r.Hold, func(rule Rule) bool {
		h := rule.holdRule()
		return !h.MayStand() || !h.Satisfied(q.Inputs.Approvals, q.Requesters()) || q.Seen != nil && !slices.Contains(q.Seen, h.ID)
	})
}

// withoutUser is the result in which four-eyes rules do not name the intent's user among the
// approvers. A policy names all, so that its decision is the same for every user.
func (r Result) withoutUser(user string) Result {
	if len(r.Hold) == 0 {
		return r
	}
	r.Hold = slices.Clone(r.Hold)
	for i, rule := range r.Hold {
		if rule.FourEyes {
			r.Hold[i].Approvers = slices.DeleteFunc(slices.Clone(rule.Approvers), func(who string) bool { return who == user })
		}
	}
	return r
}

// withoutUnmet is the result without the optional rules that nobody can satisfy.
func (r Result) withoutUnmet(can func(intents.HoldRule) bool) Result {
	if r.Verdict() != intents.Hold {
		return r
	}
	r.Hold = slices.DeleteFunc(slices.Clone(r.Hold), func(rule Rule) bool { return rule.Optional && !can(rule.holdRule()) })
	r.Allow = len(r.Hold) == 0
	return r
}

// WithHolds is the result when the router's own rules also hold the intent: what policy denies
// stays denied.
func (r Result) WithHolds(rules []intents.HoldRule) Result {
	if len(rules) == 0 || r.Verdict() == intents.Deny {
		return r
	}
	r.Hold = slices.Clone(r.Hold)
	for _, h := range rules {
		r.Hold = append(r.Hold, Rule{ID: h.ID, Reason: h.Reason, Approvers: h.Approvers, Roles: h.Roles, Count: h.Count, FourEyes: h.FourEyes, InPerson: h.InPerson, Mask: h.Mask})
	}
	r.Allow = false
	slices.SortStableFunc(r.Hold, byID)
	return r
}

// HoldForOutcome is the result when the outcome of an earlier call of the same skill is unknown:
// what is not denied waits until it is known. hint says what to do. The reason is part of the
// terms of holds, by which logs are replayed: it does not change.
func (r Result) HoldForOutcome(hint string) Result {
	if r.Verdict() == intents.Deny {
		return r
	}
	r.Allow = false
	r.Hold = append(slices.Clone(r.Hold), Rule{ID: intents.RuleUnknownOutcome, Reason: "it is not known yet what became of an earlier call of the same skill", Hint: hint})
	return r
}

// DenyUnmet is the result when nobody can satisfy some of the rules that hold the intent: these
// deny it.
func (r Result) DenyUnmet(can func(intents.HoldRule) bool) Result {
	if r.Verdict() != intents.Hold {
		return r
	}
	var deny []Rule
	for _, rule := range r.Hold {
		if h := rule.holdRule(); h.ID != intents.RuleUnknownOutcome && !can(h) {
			deny = append(deny, Rule{ID: rule.ID, Reason: intents.TooFewApprove + rule.Reason, Hint: "have an operator give more people a role that may approve: writ user put NAME --role approver, and a key to approve with: writ apikey create NAME --user NAME --role approver"})
		}
	}
	if len(deny) > 0 {
		return Result{Deny: deny}
	}
	return r
}

// Unheld is the result for an approval. An approval cannot wait for approvals itself, so the
// rules that would hold it deny it.
func (r Result) Unheld() Result {
	if r.Verdict() != intents.Hold {
		return r
	}
	return Result{Deny: r.Hold}
}
