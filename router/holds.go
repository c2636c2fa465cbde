package router

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/storage"
)

// capabilityApprove is what every approver must have.
const capabilityApprove = "runs:approve"

// holds are the orders that wait for people, and those that people have
// released and that have no outcome yet. The directory's lock guards them.
type holds struct {
	waiting  map[int64]*hold  // by position
	byID     map[string]int64 // their intent_ids
	released map[int64]int64  // order to its release record
}

func newHolds() holds {
	return holds{waiting: make(map[int64]*hold), byID: make(map[string]int64), released: make(map[int64]int64)}
}

// hold is an order that waits for people.
type hold struct {
	decided
	terms     intents.HoldTerms
	deadline  time.Time
	approvals []approval
}

// approval is one person's yes.
type approval struct {
	user, client, kid string
	role              intents.Role // of the key that signed it
	roles             []string     // of the person, as decided then
	minted            minted       // the person's grant; zero: there is none
	at                time.Time
}

// minted says when a grant was minted, and with which key.
type minted struct {
	kid string
	at  time.Time
}

func mintedBy(token string, g *intents.Grant) minted {
	return minted{intents.SignerOf(token), time.Unix(g.IssuedAt, 0)}
}

// addHold remembers a held order until it is released or ends.
func (d *Directory) addHold(o decided) error {
	h := &hold{decided: o}
	if o.decision.Hold == nil {
		return fmt.Errorf("held without saying what for")
	}
	h.terms = *o.decision.Hold
	var err error
	if h.deadline, err = time.Parse(time.RFC3339Nano, h.terms.Deadline); err != nil {
		return err
	}
	d.holds.waiting[o.position] = h
	d.holds.byID[o.decision.IntentID] = o.position
	return nil
}

// dropHold forgets a held order that was released or has ended.
func (d *Directory) dropHold(position int64) *hold {
	h := d.holds.waiting[position]
	if h != nil {
		delete(d.holds.waiting, position)
		delete(d.holds.byID, h.decision.IntentID)
	}
	return h
}

// foldApproval counts a person's yes; what a no ends has a record of its own.
func (d *Directory) foldApproval(o decided) error {
	var a catalog.Approve
	if err := json.Unmarshal(o.args, &a); err != nil {
		return err
	}
	h := d.holds.waiting[d.holds.position(a.IntentID)]
	if h == nil {
		return fmt.Errorf("an approval of an order that is not held")
	}
	if a.Decision == catalog.DecisionApprove {
		h.approvals = append(h.approvals, approval{user: o.user, client: o.client, kid: o.kid, role: o.role, roles: o.roles, minted: o.minted, at: o.now})
	}
	return nil
}

func (h holds) position(intentID string) int64 {
	if at, ok := h.byID[intentID]; ok {
		return at
	}
	return storage.Nobody
}

// Release is the part "release" of a record: a held order goes on, as decided
// anew with today's roles, policy and approvals.
type Release struct {
	Of       int64            `json:"of"`
	By       string           `json:"by"` // intent_id of the last approval
	Decision intents.Decision `json:"decision"`
	Facts    intents.Facts    `json:"facts"`
}

// ReleaseOf reads a release record.
func ReleaseOf(rec storage.Record) (rel Release, err error) {
	return rel, json.Unmarshal(rec.Parts[storage.PartRelease], &rel)
}

// foldRelease ends a hold: an order of the router has its effect here, any
// other is open until its outcome.
func (d *Directory) foldRelease(e storage.Entry) error {
	rel, err := ReleaseOf(e.Record)
	if err != nil {
		return err
	}
	h := d.dropHold(rel.Of)
	if h == nil {
		return fmt.Errorf("releases order %d, which is not held", rel.Of)
	}
	d.holds.released[rel.Of] = e.Record.Position
	if h.decision.Executor != catalog.ExecutorRouter {
		return nil
	}
	o := h.decided
	o.at, o.position, o.roles = e.Record.At, e.Record.Position, rel.Facts.Roles
	move, ok := planMoves[o.typ]
	if !ok {
		return d.foldAdmin(o)
	}
	return move(d, o)
}

// releasedAt is the position of the release record of an order without outcome.
func (v *View) releasedAt(of int64) (int64, bool) {
	v.d.mu.RLock()
	defer v.d.mu.RUnlock()
	at, ok := v.d.holds.released[of]
	return at, ok
}

// waiting is a held order as one decision sees it.
type waiting struct {
	hold
	asked intents.Asked
	by    []intents.Approval // approvals that still count, with today's roles
}

// held finds a held order of a tenant. What is decided after seeing it rests on
// it, on its approvals and on the people behind them.
func (v *View) held(tenant, intentID string) (waiting, bool) {
	v.d.mu.RLock()
	defer v.d.mu.RUnlock()
	v.rely(subjectOrder(intentID))
	v.rely(subjectTenant(tenant))
	v.rely(subjectKeys)
	h := v.d.holds.waiting[v.d.holds.position(intentID)]
	if h == nil || h.tenant != tenant {
		return waiting{}, false
	}
	return v.waiting(h), true
}

func (v *View) waiting(h *hold) waiting {
	w := waiting{hold: *h, asked: intents.Asked{Users: []string{h.user}, Key: intents.KeyOfClient(h.client)}}
	w.approvals = slices.Clone(h.approvals)
	if s := v.d.keys[h.kid].Subject; s != "" && s != h.user {
		w.asked.Users = append(w.asked.Users, s)
	}
	for _, a := range h.approvals {
		v.rely(subjectGrants(h.tenant, a.user))
		if roles, stands := v.d.stands(h.tenant, a); stands {
			w.by = append(w.by, intents.Approval{UserID: a.user, At: intents.FormatTime(a.at), Key: intents.KeyOfClient(a.client), Roles: roles})
		}
	}
	return w
}

// stands says whether a person's yes still counts, and the roles that the
// person has today: keys and grant not revoked, and still an approver.
func (d *Directory) stands(tenant string, a approval) ([]string, bool) {
	if k, ok := d.keys[a.kid]; !ok || k.Revoked {
		return nil, false // whoever has the key may have said it
	}
	roles := a.roles
	if a.role == intents.RoleOperator {
		u, known := d.tenants[tenant].users[a.user]
		if !known || u.Disabled {
			return nil, false
		}
		roles = u.Roles
	} else {
		if k, ok := d.keys[a.minted.kid]; !ok || k.Revoked || a.minted.at.Before(d.revoked[tenant+"/"+a.user]) {
			return nil, false
		}
		var disabled bool
		if roles, disabled = d.rolesNow(tenant, a.user, intents.KeyOfClient(a.client), roles); disabled {
			return nil, false
		}
	}
	var caps []string
	for _, role := range roles {
		caps = append(caps, d.tenants[tenant].roles[role]...)
	}
	return roles, covered(caps, capabilityApprove)
}

// missing are the rules of the hold that want more approvals.
func (w waiting) missing() []string {
	var out []string
	for _, rule := range w.terms.Rules {
		if !rule.Satisfied(w.by, w.asked) {
			out = append(out, rule.ID)
		}
	}
	return out
}

// people whose approval counts, in the order in which they approved.
func (w waiting) people() []string {
	out := []string{}
	for _, a := range w.by {
		out = append(out, a.UserID)
	}
	return out
}

// HeldContext is the context of a held order, for what is told of its approvals.
func (v *View) HeldContext(tenant, intentID string) (intents.Context, bool) {
	w, ok := v.held(tenant, intentID)
	return w.ctx, ok
}

// heldOf lists the held orders of a plan, oldest first.
func (v *View) heldOf(tenant, plan string) []waiting {
	return v.heldWhere(func(h *hold) bool { return plan != "" && h.tenant == tenant && h.ctx.PlanID == plan })
}

// expired lists the held orders that are past their deadline, oldest first.
func (v *View) expired(now time.Time) []waiting {
	return v.heldWhere(func(h *hold) bool { return !h.deadline.After(now) })
}

func (v *View) heldWhere(is func(*hold) bool) []waiting {
	v.d.mu.RLock()
	defer v.d.mu.RUnlock()
	var out []waiting
	for _, h := range v.d.holds.waiting {
		if is(h) {
			v.rely(subjectOrder(h.decision.IntentID))
			out = append(out, waiting{hold: *h})
		}
	}
	slices.SortFunc(out, func(a, b waiting) int { return int(a.position - b.position) })
	return out
}
