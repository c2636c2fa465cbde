package audit

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

// typeApprove is the order that people approve held ones with; capabilityApprove
// is what they need for it.
const (
	typeApprove       = "hitl.approve"
	capabilityApprove = "runs:approve"
)

// said is one person's yes.
type said struct {
	user, at string
	roles    []string // as decided then
	operator bool     // with a key of their own
	kid      string   // of the key that signed it
	key      string   // id of the API key that named the person
	minter   string   // kid of the key that signed its grant
	minted   time.Time
}

// hold remembers a held order for its approvals and its release.
func (f *fold) hold(it *item, o *open) error {
	o.held = it.order
	f.held[o.intentID] = o
	terms := it.order.decision.Hold
	if terms == nil || len(terms.Rules) == 0 {
		return errors.New("held without saying what for")
	}
	var err error
	if o.deadline, err = time.Parse(time.RFC3339Nano, terms.Deadline); err != nil || o.deadline.After(it.now.Add(intents.MaxHold)) {
		return errors.New("held without a deadline, or for more than a day")
	}
	return nil
}

// approve counts a yes, and remembers a no.
func (f *fold) approve(it *item) error {
	a, err := unmarshal[catalog.Approve](it.order.body.Intent.Args)
	if err != nil {
		return err
	}
	o := f.held[a.IntentID]
	switch {
	case o == nil && f.whole:
		return errors.New("approves an order that is not held")
	case o == nil:
		return nil
	case o.held.body.Actor.Tenant != it.order.body.Actor.Tenant:
		return errors.New("approves another tenant's order")
	case !it.now.Before(o.deadline):
		return errors.New("approves an order after its deadline")
	}
	yes := said{
		user: it.order.body.Actor.UserID, at: it.order.facts.Now, roles: it.order.facts.Roles,
		kid: it.order.opened.KID(), operator: it.order.facts.Signer.Role == string(intents.RoleOperator),
	}
	if token := it.order.grant; token != "" {
		var g intents.Grant
		if err := intents.PeekClaims(token, &g); err != nil { // its signature is a worker's to check
			return err
		}
		yes.key = intents.KeyOfClient(g.Act.Client)
		yes.minter, yes.minted = intents.SignerOf(token), time.Unix(g.IssuedAt, 0)
	}
	it.unfit = f.unfit(o, yes, a.Decision)
	if a.Decision != catalog.DecisionApprove {
		o.refused = true
		return nil
	}
	o.said = append(o.said, yes)
	o.last = it.order.decision.IntentID
	return nil
}

// unfit is an error if somebody's word about a held order had to be refused: no rule
// accepts it, or the same person's yes stands already.
func (f *fold) unfit(o *open, says said, decision string) error {
	asked, who := f.asked(o.held), intents.Approver{User: says.user, Key: says.key, Roles: says.roles}
	if !slices.ContainsFunc(o.held.decision.Hold.Rules, func(r intents.HoldRule) bool { return r.Accepts(who, asked) }) {
		return errors.New("approved by somebody who is not one of those who may approve it")
	}
	for _, y := range o.said {
		before := intents.Approval{UserID: y.user, At: y.at, Key: y.key, Roles: y.roles}
		if decision == catalog.DecisionApprove && y.user == says.user && f.counts(o, before, f.dir) == nil {
			return errors.New("approved by somebody who had approved it already")
		}
	}
	return nil
}

// asked are those who asked for a held order.
func (f *fold) asked(held *order) intents.Asked {
	asked := intents.Asked{Users: []string{held.body.Actor.UserID}}
	if s := f.keys.keys[held.kid()].Subject; s != "" {
		asked.Users = append(asked.Users, s)
	}
	var g intents.Grant
	if held.grant != "" && intents.PeekClaims(held.grant, &g) == nil { // its signature is a worker's to check
		asked.Key = intents.KeyOfClient(g.Act.Client)
	}
	return asked
}

// counts is an error if an approval that released an order did not count by
// then: nobody gave it, its key or grant was revoked, or the person had not the
// roles that it says, or none of an approver.
func (f *fold) counts(o *open, a intents.Approval, dir *directory) error {
	tenant := o.held.body.Actor.Tenant
	i := slices.IndexFunc(o.said, func(y said) bool { return y.user == a.UserID && y.at == a.At })
	if i < 0 {
		if f.whole {
			return errors.New("released with an approval that nobody gave")
		}
		return nil
	}
	yes := o.said[i]
	if yes.key != a.Key {
		return fmt.Errorf("released with an approval of %s through another API key than it was given through", a.UserID)
	}
	if k, ok := f.keys.keys[yes.kid]; !ok || k.Revoked {
		return fmt.Errorf("released with an approval of %s under a key that was revoked before", a.UserID)
	}
	t := dir.tenants[tenant]
	if t == nil {
		return errors.New("released for a tenant that is not there")
	}
	u, known := t.users[a.UserID]
	within := yes.roles
	switch {
	case known && u.Disabled, yes.operator && !known:
		return fmt.Errorf("released with an approval of %s, who was no user any more", a.UserID)
	case yes.operator:
		within = u.Roles
	default:
		k, ok := f.keys.keys[yes.minter]
		if !ok || k.Revoked || yes.minted.Before(f.revoked[tenant+"/"+a.UserID]) {
			return fmt.Errorf("released with an approval of %s under a grant that was revoked before", a.UserID)
		}
		if key, there := t.keys[yes.key]; f.rules >= intents.RulesStrict && yes.key != "" && (!there || !subset(a.Roles, key.MaxRoles)) {
			return fmt.Errorf("released with roles of %s that the API key does not give", a.UserID)
		}
		if known && !subset(a.Roles, u.Roles) {
			return fmt.Errorf("released with roles of %s that the directory does not give", a.UserID)
		}
	}
	if caps, _ := dir.capabilities(tenant, a.Roles); !subset(a.Roles, within) || !covered(caps, capabilityApprove) {
		return fmt.Errorf("released with roles of %s that the person had not, or none that may approve", a.UserID)
	}
	return nil
}

// turnedDown: a held order ends without being carried out for a reason that the
// record shows.
func (f *fold) turnedDown(o *open, it *item) error {
	switch {
	case it.outcome.Status != intents.Failed:
		return errors.New("a held order was carried out without release")
	case it.outcome.Code == intents.ApprovalRejected && f.whole && !o.refused:
		return errors.New("a held order was rejected, and nobody said so")
	case it.outcome.Code == intents.ApprovalExpired && it.at.Before(o.deadline):
		return errors.New("a held order expired before its deadline")
	default:
		return nil
	}
}

// present: whoever approves has authenticated just now, for this and nothing else.
func present(e *intents.Envelope, at time.Time) error {
	g := e.Grant()
	switch {
	case g == nil || e.Type() != typeApprove:
		return nil
	case g.Standing() || len(g.Act.AMR) == 0 || at.Sub(time.Unix(g.IssuedAt, 0)) > intents.MaxApprovalAge:
		return errors.New("approved under a grant that does not show that the approver was there")
	default:
		return nil
	}
}
