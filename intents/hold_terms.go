package intents

import (
	"slices"
	"time"
)

// Bounds of a hold's own deadline.
const (
	MaxHold     = 24 * time.Hour
	DefaultHold = MaxHold
)

// MaxApprovalAge is how old the grant of an approval may be: the approver has just
// authenticated.
const MaxApprovalAge = 5 * time.Minute

// HoldTerms state what a held intent waits for: every rule must be satisfied before
// the deadline. It is part of the decision and never changes.
type HoldTerms struct {
	Deadline string     `json:"deadline"` // RFC 3339 UTC with milliseconds
	Rules    []HoldRule `json:"rules"`
}

// RuleUnknownOutcome is a hold rule of the router's own: the outcome of an
// earlier call of the same skill is unknown. No person approves it; the state decides when it is met.
const RuleUnknownOutcome = "writ.unsettled"

// RuleAsk is the hold rule by which the router holds every question to people.
const RuleAsk = "writ.ask"

// RuleReplayAllowed is among the ids of a refusal by which a shadow says that a dry run allows the intent of a
// node.
const RuleReplayAllowed = "writ.replay.allowed"

// AwaitsOutcome reports whether the router's own rule is one of the terms.
func (h *HoldTerms) AwaitsOutcome() bool {
	return h != nil && slices.ContainsFunc(h.Rules, func(r HoldRule) bool { return r.ID == RuleUnknownOutcome })
}

// Masks reports whether a rule hides arguments from approvers.
func (h *HoldTerms) Masks() bool {
	return h != nil && slices.ContainsFunc(h.Rules, func(r HoldRule) bool { return len(r.Mask) > 0 })
}

// HoldRule is a policy rule that holds an intent, with those who may approve it.
type HoldRule struct {
	ID        string   `json:"id"`
	Reason    string   `json:"reason"`
	Approvers []string `json:"approvers,omitempty"` // named people
	Roles     []string `json:"roles,omitempty"`     // or anybody with one of these roles
	Count     int      `json:"count,omitempty"`     // how many of them must approve; 0: one
	FourEyes  bool     `json:"four_eyes,omitempty"` // none of them requested the intent, and no two are one person: see Requesters
	InPerson  bool     `json:"in_person,omitempty"` // by a key that programs do not use, or an operator's, and by no access token: see Requesters.InPerson
	Mask      []string `json:"mask,omitempty"`      // JSON Pointers into the arguments that approvers are not shown
}

// MayStand reports whether a standing approval may satisfy the rule: not where others must look at each
// call, or at arguments that some are not shown.
func (h HoldRule) MayStand() bool {
	return !h.FourEyes && len(h.Mask) == 0 && h.ID != RuleUnknownOutcome
}

// Requesters are the people who requested or edited an intent: its user, the person whose key signed it, and those
// who edited it.
type Requesters struct {
	People []Approver
	Owners map[string]string // users, by the ids of their API keys in force that may assert others
	// InPerson are the ids of API keys in force by which people act in the console or a terminal.
	InPerson map[string]bool
}

// And returns the requesters and one more.
func (r Requesters) And(who Approver) Requesters {
	r.People = append(slices.Clone(r.People), who)
	return r
}

// Include reports whether somebody is one person, for four eyes, with one of the requesters.
func (r Requesters) Include(a Approver) bool {
	return slices.ContainsFunc(r.People, func(b Approver) bool { return r.same(a, b) })
}

// same reports whether two people are one for four eyes: the same user, two who came through one API key, the owner of
// a key and somebody whom it asserts, or two whom keys of one owner assert.
func (r Requesters) same(a, b Approver) bool {
	of := []string{b.User, r.Owners[b.Key]}
	return a.Key != "" && a.Key == b.Key || slices.Contains(of, a.User) || r.Owners[a.Key] != "" && slices.Contains(of, r.Owners[a.Key])
}

// Approver is somebody who may approve. The holder of an API key that may assert
// users can be any of them: key is its id, or a CallerByToken; empty without either.
type Approver struct {
	User, Key string
	Roles     []string
}

// Accepts reports whether somebody may approve under the rule.
func (h HoldRule) Accepts(a Approver, asked Requesters) bool {
	if h.FourEyes && asked.Include(a) {
		return false
	}
	if h.InPerson && a.Key != "" && !asked.InPerson[a.Key] {
		return false
	}
	return slices.Contains(h.Approvers, a.User) || slices.ContainsFunc(h.Roles, func(r string) bool { return slices.Contains(a.Roles, r) })
}

// Needed is how many people must approve.
func (h HoldRule) Needed() int {
	if h.ID == RuleUnknownOutcome {
		return 0
	}
	return max(h.Count, 1)
}

// Approval is one named person's approval of a held intent.
type Approval struct {
	UserID string   `json:"user_id"`
	At     string   `json:"at"`              // RFC 3339
	Key    string   `json:"key,omitempty"`   // id of the API key that named the person, or the CallerByToken; empty: a key of their own
	Roles  []string `json:"roles,omitempty"` // as of the release; no policy sees them
	Items  []string `json:"items,omitempty"` // of approval.ask: the items that the person approved; nil: all
}

// Approver returns the approver.
func (a Approval) Approver() Approver { return Approver{User: a.UserID, Key: a.Key, Roles: a.Roles} }

// Satisfied reports whether enough people have approved.
func (h HoldRule) Satisfied(by []Approval, asked Requesters) bool {
	return h.CountApprovals(by, asked) >= h.Needed()
}

// CountApprovals returns how many people have approved under the rule, each counted once.
func (h HoldRule) CountApprovals(by []Approval, asked Requesters) int {
	var people []Approval
	for _, a := range by {
		same := func(b Approval) bool {
			return b.UserID == a.UserID || h.FourEyes && asked.same(a.Approver(), b.Approver())
		}
		if h.Accepts(a.Approver(), asked) && !slices.ContainsFunc(people, same) {
			people = append(people, a)
		}
	}
	return len(people)
}
