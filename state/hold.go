package state

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/storage"
)

// holds are the intents pending approval, and those that people have released and that have no
// outcome yet.
type holds struct {
	waiting  map[int64]*Hold      // by position
	byID     map[string]int64     // by intent_id
	released map[int64]int64      // intent to its release record
	edits    map[string]*edit     // by the intent_id of the intent that was held
	standing map[string]*standing // likewise
}

func newHolds() holds {
	return holds{waiting: make(map[int64]*Hold), byID: make(map[string]int64), released: make(map[int64]int64), edits: make(map[string]*edit), standing: make(map[string]*standing)}
}

// addHold records a held intent until it is released or ends.
func (s *State) addHold(o Intent) error {
	if o.Decision.Hold == nil {
		return fmt.Errorf("a hold without its terms")
	}
	h := &Hold{Intent: o, Terms: *o.Decision.Hold}
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

// dropHold removes a held intent that was released or has ended.
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
	return storage.NoPosition
}

// Release is the part "release" of a record: a held intent is executed, decided again with the
// current roles, policy and approvals.
type Release struct {
	Target   int64                  `json:"of"`
	By       string                 `json:"by"` // intent_id of the last approval
	Decision intents.Decision       `json:"decision"`
	Inputs   intents.DecisionInputs `json:"facts"`
}

// ReleaseOf reads a release record.
func ReleaseOf(r storage.Record) (Release, error) { return readPart[Release](r, storage.PartRelease) }

func (s *State) applyRelease(r storage.Record) error {
	rel, err := ReleaseOf(r)
	if err != nil {
		return err
	}
	return s.release(rel, r.Position, r.At)
}

// release ends a hold: an intent of the router has its effect here, any other is open until its
// outcome.
func (s *State) release(rel Release, position int64, at time.Time) error {
	h := s.dropHold(rel.Target)
	if h == nil {
		return fmt.Errorf("releases intent %d, which is not held", rel.Target)
	}
	s.holds.released[rel.Target] = position
	if h.Decision.Executor != catalog.ExecutorRouter {
		return nil
	}
	return s.apply(releasedIntent(h.Intent, rel, position, at))
}

// releasedIntent is a held intent as its release lets it continue.
func releasedIntent(o Intent, rel Release, position int64, at time.Time) Intent {
	o.At, o.Position, o.Roles, o.Released = at, position, rel.Inputs.Roles, true
	o.Approvals = rel.Inputs.Approvals
	o.decidedAt(rel.Inputs)
	return o
}

// ReleasedAt is the position of the release record of an intent without outcome.
func (v *View) ReleasedAt(of int64) (int64, bool) {
	v.s.mu.RLock()
	defer v.s.mu.RUnlock()
	at, ok := v.s.holds.released[of]
	return at, ok
}

// Hold is an intent pending approval.
type Hold struct {
	Intent
	Terms     intents.HoldTerms `json:"terms"`
	Deadline  time.Time         `json:"deadline"`
	Approvals []approval        `json:"approvals"` // all, including those that no longer count

	// Of an intent that results from an edit: the hitl.approve that made it, and the editors.
	Edit    string     `json:"edit,omitempty"`
	Editors []approval `json:"editors,omitempty"`

	Edited   bool `json:"edited,omitempty"`   // somebody has edited it
	Rejected bool `json:"rejected,omitempty"` // somebody has rejected it

	// Set for one decision:
	Requesters intents.Requesters `json:"-"`
	By         []intents.Approval `json:"-"` // that still count, with the current roles
}

// Hold finds a held intent of a tenant. It adds the intent, its approvals and the directory rows
// of the approvers to the decision's reads.
func (v *View) Hold(tenant, intentID string) (Hold, bool) {
	v.s.mu.RLock()
	defer v.s.mu.RUnlock()
	return v.hold(tenant, intentID)
}

func (v *View) hold(tenant, intentID string) (Hold, bool) {
	v.addRead(SubjectIntent(intentID))
	v.addRead(SubjectTenant(tenant))
	v.addRead(SubjectKeys)
	h := v.s.holds.waiting[v.s.holds.position(intentID)]
	if h == nil || h.Tenant != tenant {
		return Hold{}, false
	}
	return v.counted(*h), true
}

// counted is a hold with the approvals that count now.
func (v *View) counted(h Hold) Hold {
	h.Approvals, h.By = slices.Clone(h.Approvals), nil
	h.Requesters = v.s.requesters(&h.Intent, h.Editors)
	for _, a := range h.Approvals {
		v.addRead(subjectGrants(h.Tenant, a.User))
		if roles, err := v.s.rolesToday(h.Tenant, a); err == nil && v.s.mayApprove(h.Tenant, roles) {
			h.By = append(h.By, intents.Approval{UserID: a.User, At: intents.FormatTime(a.At), Key: a.Grant.Caller(), Roles: roles, Items: a.Items})
		}
	}
	return h
}

// requesters are those who requested an intent.
func (s *State) requesters(o *Intent, editors []approval) intents.Requesters {
	out := s.dir.Requesters(o.Tenant, intents.Approver{User: o.User, Key: o.Grant.Caller()}, s.keys[o.KID].Subject)
	for _, a := range editors {
		out = out.And(intents.Approver{User: a.User, Key: a.Grant.Caller()})
	}
	return out
}

// With is the hold after an approval: approvals are counted again.
func (v *View) With(h Hold, yes Intent) Hold {
	v.s.mu.RLock()
	defer v.s.mu.RUnlock()
	h.Approvals = append(slices.Clone(h.Approvals), approvalOf(yes))
	return v.counted(h)
}

// Writes lists what every change to a hold writes.
func (h Hold) Writes() []storage.Subject {
	out := []storage.Subject{SubjectIntent(h.Decision.IntentID)}
	if c := h.Context; c.PlanID != "" { // its end may begin a revision
		out = append(out, SubjectPlan(h.Tenant, c.PlanID), SubjectPlanState(h.Tenant, c.PlanID), SubjectEffects(h.Tenant, c.PlanID, c.Step))
	}
	return out
}

// Last is the intent_id of the last approval; empty if there is none.
func (h Hold) Last() string {
	if n := len(h.Approvals); n > 0 {
		return h.Approvals[n-1].By
	}
	return ""
}

// Missing are the rules of the hold that need more approvals.
func (h Hold) Missing() []string {
	var out []string
	for _, rule := range h.Terms.Rules {
		if !rule.Satisfied(h.By, h.Requesters) {
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

// Holds lists the held intents of a tenant with their approvals, oldest first. No decision may
// read it.
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

// WaitingHolds lists the held intents of all tenants, oldest first, without what counts now. No decision
// may read it.
func (s *State) WaitingHolds() []Hold {
	s.mu.RLock()
	defer s.mu.RUnlock()
	out := make([]Hold, 0, len(s.holds.waiting))
	for _, h := range s.holds.waiting {
		out = append(out, *h)
	}
	slices.SortFunc(out, func(a, b Hold) int { return int(a.Position - b.Position) })
	return out
}

// WaitingHold is one of them, with what counts now; false if it does not wait.
func (s *State) WaitingHold(tenant, intentID string) (Hold, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.view().hold(tenant, intentID)
}

// Waiting counts the held intents in the first and in the second half of their time, and returns
// how long the oldest has waited.
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

// HeldOf counts the held intents of a user and of a whole tenant.
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

// EndedHolds lists the held intents in the plans that an intent of the router ends, or in the
// steps that it drops, and those of a user whom it disables, oldest first; their approvals are not
// counted.
func (v *View) EndedHolds(o Intent) []Hold {
	switch o.Type {
	case TypeCancel, TypePlanClose, TypePlan:
		a, err := ArgsOf[catalog.Plan](o) // all types name the plan in the same member
		return v.holdsWhere(func(h *Hold) bool {
			return err == nil && a.PlanID != "" && h.Tenant == o.Tenant && h.Context.PlanID == a.PlanID &&
				(o.Type != TypePlan || slices.Contains(a.Drop, h.Context.Step))
		})
	case TypeGrantRevoke, TypeAdminPut:
		ends := sync.OnceValues(func() (tenant, user string) { return v.s.userEnded(o) }) // under the lock
		return v.holdsWhere(func(h *Hold) bool {
			tenant, user := ends()
			p := v.s.plans[tenant+"/"+h.Context.PlanID]
			disabled := o.Type == TypeAdminPut && user != "" && h.User == user // nobody may release it
			return h.Tenant == tenant && (disabled || p != nil && p.View.UserID == user && !p.View.Status.Ended())
		})
	}
	return nil
}

// ExpiredHolds lists the held intents that are past their deadline, oldest first; their
// approvals are not counted.
func (v *View) ExpiredHolds(now time.Time) []Hold {
	return v.holdsWhere(func(h *Hold) bool { return !h.Deadline.After(now) })
}

func (v *View) holdsWhere(is func(*Hold) bool) []Hold {
	v.s.mu.RLock()
	defer v.s.mu.RUnlock()
	var out []Hold
	for _, h := range v.s.holds.waiting {
		if is(h) {
			v.addRead(SubjectIntent(h.Decision.IntentID))
			out = append(out, *h)
		}
	}
	slices.SortFunc(out, func(a, b Hold) int { return int(a.Position - b.Position) })
	return out
}
