package intents

import (
	"slices"
	"time"
)

// Bounds of a hold's own deadline (DESIGN §11).
const (
	MaxHold     = 24 * time.Hour
	DefaultHold = MaxHold
)

// MaxApprovalAge is how old the grant of an approval may be: the approver has
// just been there.
const MaxApprovalAge = 5 * time.Minute

// HoldTerms say what a held order waits for: every rule must be satisfied before
// the deadline. It is part of the decision and never changes.
type HoldTerms struct {
	Deadline string     `json:"deadline"` // RFC 3339 UTC with milliseconds
	Rules    []HoldRule `json:"rules"`
}

// HoldRule is a policy rule that holds an order, and who may end that.
type HoldRule struct {
	ID        string   `json:"id"`
	Reason    string   `json:"reason"`
	Approvers []string `json:"approvers,omitempty"` // named people
	Roles     []string `json:"roles,omitempty"`     // or whoever has one of these roles
	Count     int      `json:"count,omitempty"`     // how many of them must approve; 0: one
	FourEyes  bool     `json:"four_eyes,omitempty"` // who asked is none of them
	Mask      []string `json:"mask,omitempty"`      // JSON Pointers into the arguments that approvers are not shown
}

// Accepts says whether somebody may approve under the rule. asked are those who
// asked for the order: its user, and the person whose key signed it.
func (h HoldRule) Accepts(user string, roles, asked []string) bool {
	if h.FourEyes && slices.Contains(asked, user) {
		return false
	}
	return slices.Contains(h.Approvers, user) || slices.ContainsFunc(h.Roles, func(r string) bool { return slices.Contains(roles, r) })
}

// Needed is how many people must approve.
func (h HoldRule) Needed() int { return max(h.Count, 1) }
