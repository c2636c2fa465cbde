package state

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/storage"
)

// View reads the state for one decision and records its reads. The decision is made on the state
// as it was when the view began: if a subject has changed since, its commit is stale. One
// goroutine uses it.
type View struct {
	s      *State
	asOf   int64                        // position after the last record when the view began
	dir    *Directory                   // in force then; nil: the holder of the lock reads that of the state
	types  *catalog.Catalog             // while an intent is judged
	reads  []storage.Assert             // in order of reading
	lookup map[storage.Subject]struct{} // the subjects of reads, once there are more than few

	Budget *intents.BudgetInput // read by the decision; nil: none
	Edges  []intents.EdgeInput  // same
	Patch  *intents.PatchInput  // same

	OpenAgents []string // same, sorted
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

// view is View with the lock held.
func (s *State) view() *View {
	return &View{s: s, asOf: s.next}
}

// AsOf is the position after the last record when the view began, for its commit.
func (v *View) AsOf() int64 { return v.asOf }

// changed is a position at which no subject is ever written: a commit that asserts it is stale.
const changed = storage.NoPosition - 1

// addRead records the position of a subject. The lock must be held.
func (v *View) addRead(subject storage.Subject) {
	if v.HasRead(subject) {
		return // the first read counts
	}
	at, ok := v.s.lastWrites[subject]
	switch {
	case !ok:
		at = storage.NoPosition
	case at >= v.asOf:
		at = changed // since the view began
	}
	if v.reads == nil {
		v.reads = make([]storage.Assert, 0, few)
	}
	v.reads = append(v.reads, storage.Assert{Subject: subject, At: at})
	switch {
	case len(v.reads) == few+1:
		v.lookup = make(map[storage.Subject]struct{}, 2*few)
		for _, a := range v.reads {
			v.lookup[a.Subject] = struct{}{}
		}
	case len(v.reads) > few:
		v.lookup[subject] = struct{}{}
	}
}

// few is how many reads are looked through; most decisions have no more.
const few = 12

// HasRead reports whether the decision has read a subject.
func (v *View) HasRead(subject storage.Subject) bool {
	if v.lookup != nil {
		_, ok := v.lookup[subject]
		return ok
	}
	return slices.ContainsFunc(v.reads, func(a storage.Assert) bool { return a.Subject == subject })
}

// HasReadIntents reports whether the decision has read a plan, a task or another intent: intents
// that executors carry out change these, too.
func (v *View) HasReadIntents() bool {
	for _, a := range v.reads {
		switch kind, _, _ := strings.Cut(string(a.Subject), "/"); kind {
		case "plan", "planstate", "effects", "task", "intent", "session", "request", "schedules", "sources", "artifact":
			return true
		}
	}
	return false
}

// Asserts are the decision's reads, for its commit.
func (v *View) Asserts() []storage.Assert {
	out := slices.Clone(v.reads)
	slices.SortFunc(out, func(a, b storage.Assert) int { return cmp.Compare(a.Subject, b.Subject) })
	return out
}

// Position is that of the last record that the view sees.
func (v *View) Position() int64 { return v.asOf - 1 }

// Directory is all directory data at that position. Data read of a tenant other than the
// decision's own is as it was then, and may have changed since.
func (v *View) Directory() *Directory { return v.dir }

// Key implements intents.Keys: the key set in force, and task keys. Whether a task has ended is
// checked later, since its intents' duplicates are still answered.
func (v *View) Key(kid string) (intents.Key, error) {
	v.s.mu.RLock()
	defer v.s.mu.RUnlock()
	v.addRead(SubjectKeys)
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

// RevokedBefore is the time before which grants of a user are invalid; zero: none are.
func (v *View) RevokedBefore(tenant, sub string) time.Time {
	v.s.mu.RLock()
	defer v.s.mu.RUnlock()
	v.addRead(subjectGrants(tenant, sub))
	return v.s.revoked[tenant+"/"+sub]
}

// AddIntentRead adds the state of another intent to the decision's reads.
func (v *View) AddIntentRead(intentID string) {
	v.s.mu.RLock()
	defer v.s.mu.RUnlock()
	v.addRead(SubjectIntent(intentID))
}

// AddPolicyReads adds everything that its policy reads to a decision's reads: the policy in
// force and the tenant's data. A decision calls it before it takes an engine, so that no commit
// succeeds on the answer of an older engine.
func (v *View) AddPolicyReads(tenant string) {
	v.s.mu.RLock()
	defer v.s.mu.RUnlock()
	v.addRead(SubjectPolicy)
	v.addRead(SubjectTenant(tenant))
}

// PolicyDigest is the digest of the policy in force according to the record.
func (v *View) PolicyDigest() string {
	v.s.mu.RLock()
	defer v.s.mu.RUnlock()
	v.addRead(SubjectPolicy)
	return v.s.policy.Digest
}
