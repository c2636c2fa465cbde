package policies

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"

	"aob.dev/writ/intents"
)

// Ids of refusals that no rule of the tree makes.
const (
	// IDEngine: the policy failed, was undefined or took too long.
	IDEngine = "writ.engine"
	// IDDefault: no rule allows the intent.
	IDDefault = "writ.default"
)

// Obligations that a policy may attach; an unknown one denies.
var obligations = []string{"mask", "max_bytes", "ttl_max", "driver", "notify", "redact"}

// Rule is a deny or hold rule that fired. Reason is METADATA text: it contains no value of the
// intent.
type Rule struct {
	ID        string   `json:"id"`
	Reason    string   `json:"reason"`
	Hint      string   `json:"hint,omitempty"`
	Approvers []string `json:"approvers,omitempty"` // hold: who may approve
	// Of hold rules; see intents.HoldRule.
	Roles     []string `json:"roles,omitempty"`
	Count     int      `json:"count,omitempty"`
	FourEyes  bool     `json:"four_eyes,omitempty"`
	InPerson  bool     `json:"in_person,omitempty"`
	Mask      []string `json:"mask,omitempty"`
	WithinSec int      `json:"within_sec,omitempty"` // the hold's deadline, from its beginning; 0: a day
	Optional  bool     `json:"optional,omitempty"`   // it holds only what somebody can approve
}

// Result of a decision. At most one of Allow, Deny and Hold is set: a denied intent is not held,
// and a held one is not allowed.
type Result struct {
	Allow       bool                 `json:"allow"`
	Deny        []Rule               `json:"deny,omitempty"`
	Hold        []Rule               `json:"hold,omitempty"`
	Obligations []intents.Obligation `json:"obligations,omitempty"`

	// Outlived: the intent asks for a longer life than ttl_max allows: it is denied, by no rule.
	Outlived bool `json:"-"`
}

// Verdict in one word.
func (r Result) Verdict() intents.Verdict {
	switch {
	case r.Allow && len(r.Deny) == 0 && len(r.Hold) == 0:
		return intents.Allow
	case len(r.Deny) == 0 && len(r.Hold) > 0:
		return intents.Hold
	default:
		return intents.Deny
	}
}

// PolicyIDs returns the sorted ids of the rules that determined the verdict; none for allow.
func (r Result) PolicyIDs() []string {
	var ids []string
	for _, rule := range slices.Concat(r.Deny, r.Hold) {
		ids = append(ids, rule.ID)
	}
	return ids
}

// Approvers of a held intent: those whom every rule that holds it accepts.
func (r Result) Approvers() []string {
	if len(r.Hold) == 0 {
		return nil
	}
	out := slices.Clone(r.Hold[0].Approvers)
	for _, rule := range r.Hold[1:] {
		if rule.ID == intents.RuleUnknownOutcome {
			continue // it requires no approver
		}
		out = slices.DeleteFunc(out, func(who string) bool { return !slices.Contains(rule.Approvers, who) })
	}
	return out
}

// Refusal is the router's response to the result: POLICY_DENIED or APPROVAL_REQUIRED; nil for
// allow.
func (r Result) Refusal() *intents.Refusal {
	var (
		code  intents.Code
		first Rule
	)
	switch v := r.Verdict(); {
	case v == intents.Allow:
		return nil
	case r.Outlived:
		return intents.Refuse(intents.PolicyDenied, "/constraints/ttl_sec", "the intent asks for a longer ttl_sec than a policy allows")
	case v == intents.Hold:
		code, first = intents.ApprovalRequired, r.Hold[0]
	default:
		code, first = intents.PolicyDenied, r.Deny[0]
	}
	refusal := intents.Refuse(code, "", first.Reason)
	refusal.PolicyIDs = r.PolicyIDs()
	if first.Hint != "" {
		refusal.Hint = first.Hint
	}
	return refusal
}

// outlasts reports whether an intent that is not denied asks for a longer life than ttl_max
// allows: the decision enforces that obligation, and nothing after it does.
func (r Result) outlasts(ttl time.Duration) bool {
	return r.Verdict() != intents.Deny && slices.ContainsFunc(r.Obligations, func(o intents.Obligation) bool {
		limit, ok := o.Value.(float64)
		return o.Name == "ttl_max" && (!ok || ttl.Seconds() > limit)
	})
}

func broken(reason string) Result { return Result{Deny: []Rule{{ID: IDEngine, Reason: reason}}} }

// decodeDecision decodes the result of the query. Members that the contract does not name are
// refused: a misspelt "deny" must not count as none.
func decodeDecision(term *ast.Term) (Result, error) {
	if allows(term) {
		return Result{Allow: true, Deny: []Rule{}, Hold: []Rule{}, Obligations: []intents.Obligation{}}, nil
	}
	var d struct {
		Allow       *bool                `json:"allow"`
		Deny        *[]Rule              `json:"deny"`
		Hold        *[]Rule              `json:"hold"`
		Obligations []intents.Obligation `json:"obligations"`
	}
	if err := decodeTerm(term, &d); err != nil {
		return Result{}, err
	}
	if d.Allow == nil || d.Deny == nil || d.Hold == nil {
		return Result{}, errors.New("decision lacks allow, deny or hold")
	}
	return Result{Allow: *d.Allow, Deny: *d.Deny, Hold: *d.Hold, Obligations: d.Obligations}, nil
}

// allows reports whether a decision allows and says no more: most do.
func allows(term *ast.Term) bool {
	if term == nil {
		return false
	}
	decision, ok := term.Value.(ast.Object)
	return ok && decision.Len() == 4 && decision.Get(allowName).Equal(ast.BooleanTerm(true)) &&
		empty(decision.Get(denyName)) && empty(decision.Get(holdName)) && empty(decision.Get(obligationsName))
}

var (
	allowName, denyName, holdName = ast.StringTerm("allow"), ast.StringTerm("deny"), ast.StringTerm("hold")
	obligationsName               = ast.StringTerm("obligations")
)

func empty(term *ast.Term) bool {
	if term == nil {
		return false
	}
	switch list := term.Value.(type) {
	case ast.Set:
		return list.Len() == 0
	case *ast.Array:
		return list.Len() == 0
	}
	return false
}

// tighten adds the deny and hold rules of extension packages.
func (r Result) tighten(deny, hold *ast.Term) (Result, error) {
	var more, held []Rule
	if err := errors.Join(decodeTerm(deny, &more), decodeTerm(hold, &held)); err != nil {
		return Result{}, err
	}
	r.Deny, r.Hold = append(r.Deny, more...), append(r.Hold, held...)
	return r, nil
}

// resolve checks the rules that fired against the tree's METADATA. Deny takes precedence over
// hold, and hold over allow.
func (r Result) resolve(known map[string]RuleInfo) (Result, error) {
	for _, rule := range slices.Concat(r.Deny, r.Hold) {
		if _, ok := known[rule.ID]; !ok || rule.Reason == "" || rule.ID == intents.RuleUnknownOutcome || rule.ID == intents.RuleAsk || rule.ID == IDInput {
			return Result{}, fmt.Errorf("rule %q is not described by METADATA, gives no reason, or has the name of a rule of the router", rule.ID)
		}
	}
	for _, rule := range r.Hold {
		if rule.Count < 0 || rule.WithinSec < 0 || rule.within() > intents.MaxHold {
			return Result{}, fmt.Errorf("rule %q: count and within_sec (at most a day) must be positive", rule.ID)
		}
	}
	for _, o := range r.Obligations {
		if !slices.Contains(obligations, o.Name) {
			return Result{}, fmt.Errorf("obligation %q is unknown", o.Name)
		}
	}
	slices.SortFunc(r.Deny, byID)
	slices.SortFunc(r.Hold, byID)
	switch {
	case len(r.Deny) > 0:
		return Result{Deny: r.Deny}, nil
	case !r.Allow: // a hold of what nothing allows needs no approval
		return Result{Deny: []Rule{{ID: IDDefault, Reason: "no policy allows this intent"}}}, nil
	case len(r.Hold) > 0:
		return Result{Hold: r.Hold, Obligations: r.Obligations}, nil
	}
	return Result{Allow: true, Obligations: r.Obligations}, nil
}

func byID(a, b Rule) int {
	return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Reason, b.Reason))
}

func decodeTerm(term *ast.Term, into any) error {
	if term == nil {
		return errors.New("undefined")
	}
	v, err := ast.JSON(term.Value)
	if err != nil {
		return err
	}
	return decodeStrict(v, into)
}
