package state

import (
	"fmt"
	"slices"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/storage"
)

// holds are the orders that wait for people, and those that people have released
// and that have no outcome yet.
type holds struct {
	waiting  map[int64]*Hold  // by position
	byID     map[string]int64 // their intent_ids
	released map[int64]int64  // order to its release record
	edits    map[string]*edit // by the intent_id of the order that was held
}

func newHolds() holds {
	return holds{waiting: make(map[int64]*Hold), byID: make(map[string]int64), released: make(map[int64]int64), edits: make(map[string]*edit)}
}

// addHold remembers a held order until it is released or ends.
func (s *State) addHold(o Order) error {
	if o.Decision.Hold == nil {
		return fmt.Errorf("a hold without its terms")
	}
	h := &Hold{Order: o, Terms: *o.Decision.Hold}
	var err error
	if h.Deadline, err = time.Parse(time.RFC3339Nano, h.Terms.Deadline); err != nil {
		return err
	}
	s.takeEdit(h)
	s.holds.add(h)
	return nil
}

func (h holds) add(x *Hold) {
	h.waiting[x.Position], h.byID[x.Decision.IntentID] = x, x.Position
}

// dropHold forgets a held order that was released or has ended.
func (s *State) dropHold(position int64) *Hold {
	h := s.holds.waiting[position]
	if h != nil {
		delete(s.holds.waiting, position)
		delete(s.holds.byID, h.Decision.IntentID)
	}
	return h
}

func (h holds) position(intentID string) int64 {
	if at, ok := h.byID[intentID]; ok {
		return at
	}
	return storage.Nobody
}

// Release is the part "release" of a record: a held order is carried out, as decided
// anew with today's roles, policy and approvals.
type Release struct {
	Of       int64            `json:"of"`
	By       string           `json:"by"` // intent_id of the last approval
	Decision intents.Decision `json:"decision"`
	Facts    intents.Facts    `json:"facts"`
}

// ReleaseOf reads a release record.
func ReleaseOf(r storage.Record) (Release, error) { return readPart[Release](r, storage.PartRelease) }

func (s *State) foldRelease(r storage.Record) error {
	rel, err := ReleaseOf(r)
	if err != nil {
		return err
	}
	return s.release(rel, r.Position, r.At)
}

// release ends a hold: an order of the router has its effect here, any other is open
// until its outcome.
func (s *State) release(rel Release, position int64, at time.Time) error {
	h := s.dropHold(rel.Of)
	if h == nil {
		return fmt.Errorf("releases order %d, which is not held", rel.Of)
	}
	s.holds.released[rel.Of] = position
	o := releasedOrder(h.Order, rel, position, at)
	if h.Decision.Executor != catalog.ExecutorRouter {
		if x, open := s.orders[rel.Of]; open {
			s.sent(x, o)
		}
		return nil
	}
	return s.apply(o)
}

// releasedOrder is a held order as its release lets it go on.
func releasedOrder(o Order, rel Release, position int64, at time.Time) Order {
	o.At, o.Position, o.Roles, o.Released = at, position, rel.Facts.Roles, true
	o.Approvals = rel.Facts.Approvals
	o.decidedAt(rel.Facts)
	return o
}

// ReleasedAt is the position of the release record of an order without outcome.
func (v *View) ReleasedAt(of int64) (int64, bool) {
	v.s.mu.RLock()
	defer v.s.mu.RUnlock()
	at, ok := v.s.holds.released[of]
	return at, ok
}

// Hold is an order that waits for people.
type Hold struct {
	Order
	Terms     intents.HoldTerms `json:"terms"`
	Deadline  time.Time         `json:"deadline"`
	Approvals []approval        `json:"approvals"` // all that were given

	// Of an order that people have made of others: the hitl.approve that made it, and who did.
	Edit    string     `json:"edit,omitempty"`
	Editors []approval `json:"editors,omitempty"`

	// As one decision sees it:
	Asked intents.Asked      `json:"-"`
	By    []intents.Approval `json:"-"` // that still count, with the roles of today
}

// Hold finds a held order of a tenant. The decision relies on it, on its approvals and
// on the directory rows of the approvers.
func (v *View) Hold(tenant, intentID string) (Hold, bool) {
	v.s.mu.RLock()
	defer v.s.mu.RUnlock()
	return v.hold(tenant, intentID)
}

func (v *View) hold(tenant, intentID string) (Hold, bool) {
	v.rely(SubjectOrder(intentID))
	v.rely(SubjectTenant(tenant))
	v.rely(SubjectKeys)
	h := v.s.holds.waiting[v.s.holds.position(intentID)]
	if h == nil || h.Tenant != tenant {
		return Hold{}, false
	}
	return v.counted(*h), true
}

// counted is a hold with the approvals that count today.
func (v *View) counted(h Hold) Hold {
	h.Approvals, h.By = slices.Clone(h.Approvals), nil
	h.Asked = v.s.asked(&h.Order, h.Editors)
	for _, a := range h.Approvals {
		v.rely(subjectGrants(h.Tenant, a.User))
		if roles, err := v.s.rolesToday(h.Tenant, a); err == nil && v.s.mayApprove(h.Tenant, roles) {
			h.By = append(h.By, intents.Approval{UserID: a.User, At: intents.FormatTime(a.At), Key: a.Grant.APIKey(), Roles: roles, Items: a.Items})
		}
	}
	return h
}

// asked are those who asked for an order.
func (s *State) asked(o *Order, editors []approval) intents.Asked {
	out := intents.Asked{Users: []string{o.User}}
	if subject := s.keys[o.KID].Subject; subject != "" && subject != o.User {
		out.Users = append(out.Users, subject)
	}
	if key := o.Grant.APIKey(); key != "" {
		out.Keys = append(out.Keys, key)
	}
	for _, a := range editors {
		out = out.And(intents.Approver{User: a.User, Key: a.Grant.APIKey()})
	}
	return out
}

// With is the hold once somebody has approved it: approvals are counted anew.
func (v *View) With(h Hold, yes Order) Hold {
	v.s.mu.RLock()
	defer v.s.mu.RUnlock()
	h.Approvals = append(slices.Clone(h.Approvals), approvalOf(yes))
	return v.counted(h)
}

// Touches are what every change to a hold changes.
func (h Hold) Touches() []storage.Subject {
	out := []storage.Subject{SubjectOrder(h.Decision.IntentID)}
	if c := h.Context; c.PlanID != "" { // that it ends may begin a revision
		out = append(out, SubjectPlan(h.Tenant, c.PlanID), SubjectPlanState(h.Tenant, c.PlanID), SubjectEffects(h.Tenant, c.PlanID, c.Step))
	}
	return out
}

// Missing are the rules of the hold that need more approvals.
func (h Hold) Missing() []string {
	var out []string
	for _, rule := range h.Terms.Rules {
		if !rule.Satisfied(h.By, h.Asked) {
			out = append(out, rule.ID)
		}
	}
	return out
}

// People whose approval counts, in the order in which they approved.
func (h Hold) People() []string {
	out := []string{}
	for _, a := range h.By {
		out = append(out, a.UserID)
	}
	return out
}

// Holds lists the held orders of a tenant with their approvals, oldest first. No
// decision may rely on it.
func (s *State) Holds(tenant string) []Hold {
	s.mu.RLock()
	defer s.mu.RUnlock()
	v := s.view()
	var out []Hold
	for _, h := range s.holds.waiting {
		if h.Tenant == tenant {
			out = append(out, v.counted(*h))
		}
	}
	slices.SortFunc(out, func(a, b Hold) int { return int(a.Position - b.Position) })
	return out
}

// Waiting counts the held orders by the half of their time that they are in, and says how
// long the oldest has waited.
func (s *State) Waiting(now time.Time) (first, second int, oldest time.Duration) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, h := range s.holds.waiting {
		waited := now.Sub(h.At)
		if oldest = max(oldest, waited); waited > h.Deadline.Sub(h.At)/2 {
			second++
		} else {
			first++
		}
	}
	return first, second, oldest
}

// HeldOf counts the held orders of a user and of a whole tenant.
func (s *State) HeldOf(tenant, user string) (ofUser, ofTenant int) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, h := range s.holds.waiting {
		if h.Tenant == tenant {
			ofTenant++
			if h.User == user {
				ofUser++
			}
		}
	}
	return ofUser, ofTenant
}

// EndedHolds are the held orders in the plans that an order of the router ends, or in the
// steps that it drops, oldest first; their approvals are not counted.
func (v *View) EndedHolds(o Order) []Hold {
	switch o.Type {
	case TypeCancel, TypePlanClose, TypePlan:
		a, err := argsOf[catalog.Plan](o) // all name the plan alike
		return v.holdsWhere(func(h *Hold) bool {
			return err == nil && a.PlanID != "" && h.Tenant == o.Tenant && h.Context.PlanID == a.PlanID &&
				(o.Type != TypePlan || slices.Contains(a.Drop, h.Context.Step))
		})
	case TypeGrantRevoke, TypeAdminPut:
		return v.holdsWhere(func(h *Hold) bool {
			tenant, user := v.s.userEnded(o)
			p := v.s.plans[tenant+"/"+h.Context.PlanID]
			return h.Tenant == tenant && p != nil && p.View.UserID == user && !final(p.View.Status)
		})
	}
	return nil
}

// Expired lists the held orders that are past their deadline, oldest first; their
// approvals are not counted.
func (v *View) Expired(now time.Time) []Hold {
	return v.holdsWhere(func(h *Hold) bool { return !h.Deadline.After(now) })
}

func (v *View) holdsWhere(is func(*Hold) bool) []Hold {
	v.s.mu.RLock()
	defer v.s.mu.RUnlock()
	var out []Hold
	for _, h := range v.s.holds.waiting {
		if is(h) {
			v.rely(SubjectOrder(h.Decision.IntentID))
			out = append(out, *h)
		}
	}
	slices.SortFunc(out, func(a, b Hold) int { return int(a.Position - b.Position) })
	return out
}
