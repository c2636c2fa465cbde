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
		ID: r.ID, Reason: r.Reason, Approvers: r.Approvers, Roles: r.Roles, Count: r.Count, FourEyes: r.FourEyes, Mask: r.Mask,
	}
}

// HoldAt is what an order that is held at a time waits for; the nearest of its
// rules' deadlines is its own. Nil unless the verdict is hold.
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

// Approved is the result once people have approved: rules that they satisfy
// hold no more, and what nothing holds any more is allowed. asked are those who
// asked for the order.
func (r Result) Approved(by []intents.Approval, asked intents.Asked) Result {
	if r.Verdict() != intents.Hold {
		return r
	}
	r.Hold = slices.DeleteFunc(slices.Clone(r.Hold), func(rule Rule) bool { return rule.holdRule().Satisfied(by, asked) })
	r.Allow = len(r.Hold) == 0
	return r
}

// Held is the result where rules of the router's own hold the order, too: what policy denies
// stays denied.
func (r Result) Held(rules []intents.HoldRule) Result {
	if len(rules) == 0 || r.Verdict() == intents.Deny {
		return r
	}
	r.Hold = slices.Clone(r.Hold)
	for _, h := range rules {
		r.Hold = append(r.Hold, Rule{ID: h.ID, Reason: h.Reason, Approvers: h.Approvers, Roles: h.Roles, Count: h.Count, FourEyes: h.FourEyes, Mask: h.Mask})
	}
	r.Allow = false
	slices.SortStableFunc(r.Hold, byID)
	return r
}

// Unsettled is the result where nobody knows as yet what became of an earlier call of the
// same skill: what is not denied waits until it is known. hint says what to do. The reason
// stands in the terms of holds, which logs are replayed by: it does not change.
func (r Result) Unsettled(hint string) Result {
	if r.Verdict() == intents.Deny {
		return r
	}
	r.Allow = false
	r.Hold = append(slices.Clone(r.Hold), Rule{ID: intents.RuleUnsettled, Reason: "it is not known yet what became of an earlier call of the same skill", Hint: hint})
	return r
}

// Met is the result where some rules that hold the order can be met by nobody: these deny it.
func (r Result) Met(can func(intents.HoldRule) bool) Result {
	if r.Verdict() != intents.Hold {
		return r
	}
	var deny []Rule
	for _, rule := range r.Hold {
		if h := rule.holdRule(); h.ID != intents.RuleUnsettled && !can(h) {
			deny = append(deny, Rule{ID: rule.ID, Reason: "it waits for people, and too few of the tenant's may approve it: " + rule.Reason, Hint: "have an operator give more people a role that may approve, such as writ user put NAME --role approver"})
		}
	}
	if len(deny) > 0 {
		return Result{Deny: deny}
	}
	return r
}

// Unheld is the result for an approval. An approval cannot wait for approvals
// itself, so the rules that would hold it deny it.
func (r Result) Unheld() Result {
	if r.Verdict() != intents.Hold {
		return r
	}
	return Result{Deny: r.Hold}
}
