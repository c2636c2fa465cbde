package state

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

// hitlApprove approves, rejects or edits a held intent. The capability of the type checks that
// the person may approve at all. The end of a rejected intent, and the release after the last
// approval, have records of their own.
var hitlApprove = newTransition(TypeApprove,
	func(v *View, o Intent, a catalog.Approve) (Effect, error) {
		if a.Decision == catalog.DecisionWithdraw {
			return v.withdraw(o.Tenant, a)
		}
		h, err := v.heldFor(o.Tenant, a)
		if err != nil {
			return Effect{}, err
		}
		if !o.Now.Before(h.Deadline) {
			return Effect{}, illegal("/intent/args/intent_id", "the approval comes after its deadline")
		}
		if err := present(o); err != nil {
			return Effect{}, err
		}
		who, err := v.approver(o)
		if err != nil {
			return Effect{}, err
		}
		if !slices.ContainsFunc(h.Terms.Rules, func(r intents.HoldRule) bool { return r.Accepts(who, h.Requesters) }) {
			if h.inPersonOnly(who) {
				x := intents.Refuse(intents.RBACForbidden, "/actor/grant", "you may approve it in person alone: by no key that programs use")
				x.Hint = "type writ approvals approve on the machine of writ, or log in to the console with the key in keys/person_key of the data directory"
				return Effect{}, x
			}
			return Effect{}, intents.Refuse(intents.RBACForbidden, "/actor/user_id", "not one of those who may approve this intent, or one person for four eyes with the one who asked: by API keys of one owner")
		}
		switch a.Decision {
		case catalog.DecisionApprove:
			err = cmp.Or(h.checkItems(a.Items), h.more(who))
			if err == nil && a.Also != nil {
				err = v.mayStand(h, *a.Also, o.Now)
			}
		case catalog.DecisionEdit:
			err = v.editable(h, who, a.Args)
		}
		if err != nil {
			return Effect{}, err
		}
		writes := h.Writes()
		if a.Also != nil {
			writes = append(writes, subjectStanding(o.Tenant))
		}
		return Effect{&catalog.ApproveResult{IntentID: h.Decision.IntentID}, writes}, nil
	},
	func(s *State, o Intent, a catalog.Approve) error {
		if a.Decision == catalog.DecisionWithdraw {
			delete(s.holds.standing, a.IntentID)
			return nil
		}
		h := s.heldFor(o.Tenant, a)
		if h == nil {
			return fmt.Errorf("an approval of an intent that is not held")
		}
		switch a.Decision {
		case catalog.DecisionApprove:
			h.Approvals = append(slices.Clone(h.Approvals), approvalOf(o))
			if a.Also != nil {
				s.addStanding(h, o, *a.Also)
			}
		case catalog.DecisionEdit:
			h.Edited = true
			s.addEdit(h, o, a.Args)
		default:
			h.Rejected = true
		}
		return nil
	})

// heldFor is the held intent that an approval is about, by its intent_id, the digest of what
// people have seen. If the approval names a node of a run, which is a step of a plan, the intent
// must wait there. nil if there is none.
func (s *State) heldFor(tenant string, a catalog.Approve) *Hold {
	h := s.holds.waiting[s.holds.position(a.IntentID)]
	if h == nil || h.Tenant != tenant {
		return nil
	}
	if a.RunID == "" {
		return h
	}
	if p := s.plans[tenant+"/"+a.RunID]; p == nil || h.Context.PlanID != a.RunID || !p.isNode(h.Context, a.NodeID) {
		return nil
	}
	return h
}

// isNode reports whether an intent belongs to a node: directly, or by the step of that id or
// number.
func (p *plan) isNode(c intents.Context, node string) bool {
	s := p.step(c.Step)
	return c.NodeID == node || c.Step > 0 && (strconv.Itoa(c.Step) == node || s != nil && s.ID == node)
}

// heldFor is the held intent that an approval is about, with the approvals that count now.
func (v *View) heldFor(tenant string, a catalog.Approve) (Hold, error) {
	h, ok := v.hold(tenant, a.IntentID)
	switch {
	case !ok:
		return h, illegal("/intent/args/intent_id", "no held intent of this tenant has this intent_id")
	case a.RunID == "":
		return h, nil
	}
	v.addRead(SubjectPlan(tenant, a.RunID))
	if v.s.heldFor(tenant, a) == nil {
		return Hold{}, illegal("/intent/args/run_id", "the intent does not wait at this node of a run of this tenant")
	}
	return h, nil
}

// HeldFor is the held intent that an approval is about, which it adds to the decision's reads.
func (v *View) HeldFor(tenant string, a catalog.Approve) (Hold, bool) {
	v.s.mu.RLock()
	defer v.s.mu.RUnlock()
	h, err := v.heldFor(tenant, a)
	return h, err == nil
}

// present checks that the approver has authenticated within intents.MaxApprovalAge.
func present(o Intent) error {
	g := o.Grant
	switch {
	case g.KID == "":
		return nil // the operator's own key
	case g.Standing:
		return intents.Refuse(intents.GrantInvalid, "/actor/grant", "a standing grant approves nothing")
	case o.Now.Sub(g.At) > intents.MaxApprovalAge:
		return intents.Refuse(intents.GrantInvalid, "/actor/grant", "an approval needs a grant of the last five minutes")
	case len(g.AMR) == 0:
		return intents.Refuse(intents.GrantInvalid, "/actor/grant", "the grant does not say how the approver was authenticated")
	}
	return nil
}

// approver is the signer of an approval, with the roles of now.
func (v *View) approver(o Intent) (intents.Approver, error) {
	v.addRead(SubjectTenant(o.Tenant))
	if o.Grant.KID == "" {
		roles, _, _ := v.s.dir.UserRoles(o.Tenant, o.User) // the capability check has found the user
		return intents.Approver{User: o.User, Roles: roles}, nil
	}
	roles, disabled := v.s.dir.RolesNow(o.Tenant, o.User, o.Grant.Caller(), o.Grant.Roles)
	if disabled {
		return intents.Approver{}, intents.Refuse(intents.RBACForbidden, "/actor/user_id", "the approver is disabled")
	}
	return intents.Approver{User: o.User, Key: o.Grant.Caller(), Roles: roles}, nil
}

// more refuses an approval that satisfies no rule beyond the earlier approvals.
func (h Hold) more(who intents.Approver) error {
	if slices.ContainsFunc(h.By, func(x intents.Approval) bool { return x.UserID == who.User }) {
		return illegal("/intent/args/intent_id", "you have approved it already: each person counts once")
	}
	with := append(slices.Clone(h.By), intents.Approval{UserID: who.User, Key: who.Key, Roles: who.Roles})
	for _, rule := range h.Terms.Rules {
		if rule.CountApprovals(with, h.Requesters) > rule.CountApprovals(h.By, h.Requesters) {
			return nil
		}
	}
	return intents.Refuse(intents.RBACForbidden, "/actor/user_id", "somebody has approved it who counts as one person for four eyes with you: by API keys of one owner")
}

// inPersonOnly reports whether a rule would accept somebody by a key of a person's own.
func (h Hold) inPersonOnly(who intents.Approver) bool {
	who.Key = ""
	return slices.ContainsFunc(h.Terms.Rules, func(r intents.HoldRule) bool { return r.InPerson && r.Accepts(who, h.Requesters) })
}

// approval is one person's approval of a held intent.
type approval struct {
	By     string       `json:"by"` // intent_id
	User   string       `json:"user"`
	KID    string       `json:"kid"`
	Signer intents.Role `json:"signer"` // of the key that signed it
	Roles  []string     `json:"roles"`  // of the person, from the decision
	Grant  Grant        `json:"grant"`  // the person's
	Items  []string     `json:"items,omitempty"`
	At     time.Time    `json:"at"`
}

func approvalOf(o Intent) approval {
	a, _ := ArgsOf[catalog.Approve](o) // its schema was checked
	return approval{By: o.Decision.IntentID, User: o.User, KID: o.KID, Signer: o.Signer, Roles: o.Roles, Grant: o.Grant, At: o.Now, Items: a.Items}
}

// rolesToday are the roles that an approver has now. The error explains why the approval no
// longer counts: a key or the grant was revoked, or the user was disabled.
func (s *State) rolesToday(tenant string, a approval) ([]string, error) {
	of := func(why string) error { return fmt.Errorf("an approval of %s%s", a.User, why) }
	if k, ok := s.keys[a.KID]; !ok || k.Revoked {
		return nil, of(" under a key that was revoked before") // whoever has the key may have approved
	}
	if a.Signer == intents.RoleOperator {
		roles, known, disabled := s.dir.UserRoles(tenant, a.User)
		if !known || disabled {
			return nil, of(", who was no user any more")
		}
		return roles, nil
	}
	if k, ok := s.keys[a.Grant.KID]; !ok || k.Revoked || a.Grant.At.Before(s.revoked[tenant+"/"+a.User]) {
		return nil, of(" under a grant that was revoked before")
	}
	roles, disabled := s.dir.RolesNow(tenant, a.User, a.Grant.Caller(), a.Roles)
	if disabled {
		return nil, of(", who was no user any more, or through an API key that was revoked")
	}
	return roles, nil
}

func (s *State) mayApprove(tenant string, roles []string) bool {
	caps, known := s.dir.Capabilities(tenant, roles)
	return known && Covers(caps, CapabilityApprove)
}

// Counts returns an error if an approval that a release of the hold names does not count in the
// current state. given: the person approved at that time.
func (v *View) Counts(h Hold, named intents.Approval) (given bool, err error) {
	v.s.mu.RLock()
	defer v.s.mu.RUnlock()
	i := slices.IndexFunc(h.Approvals, func(a approval) bool { return a.User == named.UserID && intents.FormatTime(a.At) == named.At })
	if i < 0 {
		return false, errors.New("an approval that nobody gave")
	}
	a := h.Approvals[i]
	roles, err := v.s.rolesToday(h.Tenant, a)
	switch {
	case !slices.Equal(a.Items, named.Items):
		return true, fmt.Errorf("an approval of %s of other items than the person has said yes to", a.User)
	case a.Grant.Caller() != named.Key:
		return true, fmt.Errorf("an approval of %s through another API key than it was given through", a.User)
	case err != nil:
		return true, err
	case a.Signer != intents.RoleOperator && len(without(named.Roles, a.Roles)) > 0:
		return true, fmt.Errorf("roles of %s that the person had not", a.User)
	case len(without(named.Roles, roles)) > 0:
		return true, fmt.Errorf("roles of %s that the directory does not give", a.User)
	case !v.s.mayApprove(h.Tenant, named.Roles):
		return true, fmt.Errorf("roles of %s of which none may approve", a.User)
	default:
		return true, nil
	}
}
