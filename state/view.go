package state

import (
	"maps"
	"slices"
	"strings"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/storage"
)

// View reads the state for one decision and remembers what it relied on. The decision is one
// on the state as it was when the view began: if a subject has changed since, its commit is
// stale. One goroutine uses it.
type View struct {
	s       *State
	seen    int64            // position after the last record when the view began
	dir     *Directory       // in force then; nil: whoever holds the lock reads that of the state
	types   *catalog.Catalog // while an order is judged
	asserts map[storage.Subject]int64

	Budget *intents.FactBudget // what the order was judged by; nil: by no budget
	Edges  []intents.FactEdge  // likewise
	Patch  *intents.FactPatch  // likewise
}

// View begins a decision.
func (s *State) View() *View {
	s.mu.RLock()
	defer s.mu.RUnlock()
	v := s.view()
	s.dir.shared.Store(true)
	v.dir = s.dir
	return v
}

// view is View for whoever holds the lock.
func (s *State) view() *View {
	return &View{s: s, seen: s.next, asserts: make(map[storage.Subject]int64, 6)}
}

// Seen is the position after the last record when the view began, for its commit.
func (v *View) Seen() int64 { return v.seen }

// changed is where no subject is ever touched: who asserts it is stale.
const changed = storage.Nobody - 1

// rely remembers the position of a subject. The lock must be held.
func (v *View) rely(subject storage.Subject) {
	if _, ok := v.asserts[subject]; ok {
		return // what was read first counts
	}
	at, ok := v.s.touched[subject]
	switch {
	case !ok:
		at = storage.Nobody
	case at >= v.seen:
		at = changed // since the view began
	}
	v.asserts[subject] = at
}

// Relies says whether the decision relied on a subject.
func (v *View) Relies(subject storage.Subject) bool {
	_, ok := v.asserts[subject]
	return ok
}

// ReliesOnOrders says whether the decision relied on a plan, a task or another order:
// orders that executors carry out change these, too.
func (v *View) ReliesOnOrders() bool {
	for subject := range v.asserts {
		switch kind, _, _ := strings.Cut(string(subject), "/"); kind {
		case "plan", "planstate", "effects", "task", "order", "session", "request", "schedules":
			return true
		}
	}
	return false
}

// Asserts are what the decision relied on, for its commit.
func (v *View) Asserts() []storage.Assert {
	out := make([]storage.Assert, 0, len(v.asserts))
	for _, subject := range slices.Sorted(maps.Keys(v.asserts)) {
		out = append(out, storage.Assert{Subject: subject, At: v.asserts[subject]})
	}
	return out
}

// Position is that of the last record that the view sees.
func (v *View) Position() int64 { return v.seen - 1 }

// Directory is all directory data at that position. What a decision reads of another tenant
// than its own is as it was then, and may have changed since.
func (v *View) Directory() *Directory { return v.dir }

// Rules by which the router's own code judges. A start puts the current ones in
// force before any order is judged, so new orders are always judged by these;
// replay and auditors meet earlier ones.
func (v *View) Rules() intents.Rules {
	v.s.mu.RLock()
	defer v.s.mu.RUnlock()
	return v.s.rules
}

// Key implements intents.Keys: the key set in force, and task keys. That a task
// has ended is asked later, since its orders' duplicates are still answered.
func (v *View) Key(kid string) (intents.Key, error) {
	v.s.mu.RLock()
	defer v.s.mu.RUnlock()
	v.rely(SubjectKeys)
	if k, ok := v.s.keys[kid]; ok {
		if k.Revoked {
			return intents.Key{}, intents.Refuse(intents.KeyRevoked, "/sig", "key is revoked")
		}
		return k, nil
	}
	if name, ok := v.s.taskKID[kid]; ok {
		t := v.s.tasks[name]
		return intents.Key{KID: kid, Role: intents.RoleTask, Public: t.Public, Task: name}, nil
	}
	return intents.Key{}, intents.Refuse(intents.KeyUnknown, "/sig", "no key with this kid is in force")
}

// Revoked says since when grants of a user are dead; zero: they are not.
func (v *View) Revoked(tenant, sub string) time.Time {
	v.s.mu.RLock()
	defer v.s.mu.RUnlock()
	v.rely(subjectGrants(tenant, sub))
	return v.s.revoked[tenant+"/"+sub]
}

// RelyOnOrder makes the decision rely on the state of another order.
func (v *View) RelyOnOrder(intentID string) {
	v.s.mu.RLock()
	defer v.s.mu.RUnlock()
	v.rely(SubjectOrder(intentID))
}

// RelyOnPolicy makes a decision rely on all that its policy reads: the policy in force
// and the tenant's data. A decision calls it before it takes an engine, so that no commit
// succeeds on the answer of an older engine.
func (v *View) RelyOnPolicy(tenant string) {
	v.s.mu.RLock()
	defer v.s.mu.RUnlock()
	v.rely(SubjectPolicy)
	v.rely(SubjectTenant(tenant))
}

// PolicyDigest is the digest of the policy in force by the record.
func (v *View) PolicyDigest() string {
	v.s.mu.RLock()
	defer v.s.mu.RUnlock()
	v.rely(SubjectPolicy)
	return v.s.policy.Digest
}
