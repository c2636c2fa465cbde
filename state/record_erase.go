package state

import (
	"encoding/json"
	"slices"

	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/storage"
)

// recordErase takes parts of an order out of its records. Its effect is at its own
// position: from there on nothing may show them. What the records it is about allow
// is judged before it is committed.
var recordErase = operators(TypeErase,
	func(v *View, o Order, a catalog.RecordErase) (Effect, error) {
		v.rely(SubjectOrder(a.IntentID))
		if x, open := v.s.unknown[a.IntentID]; open && x.Tenant == Named(o.Tenant, a.Tenant) {
			return Effect{}, illegal("/intent/args/intent_id", "nobody knows how the order ended: resolve it first")
		}
		return Effect{catalog.Erased{Accepted: true, Stays: catalog.Stays(a.Parts)}, []storage.Subject{SubjectOrder(a.IntentID)}}, nil
	},
	func(s *State, o Order, a catalog.RecordErase) error {
		s.erasures.number++
		e := Erasure{s.erasures.number, Named(o.Tenant, a.Tenant), a.Position, a.Parts}
		s.erasures.pending = append(s.erasures.pending, e)
		if !slices.Contains(a.Parts, catalog.ErasesOrder) {
			return nil
		}
		for _, p := range s.plans {
			if p.View.TenantID == e.Tenant && slices.Contains(p.Texts, a.Position) {
				p.removeTexts()
			}
			for _, f := range p.Facts {
				if p.View.TenantID == e.Tenant && f.IntentID == a.IntentID {
					f.Args, f.Digest, f.Erased = json.RawMessage(`{}`), "", true
				}
			}
		}
		return nil
	})

// Erasure is what an accepted record.erase takes away.
type Erasure struct {
	Number   int    // in the order in which the records say so, from 1; 0: none of State's
	Tenant   string // of the order that it is about
	Position int64
	Parts    []string // as the order names them
}

// erasures are those that are to be carried out, in the order of the records.
type erasures struct {
	number  int       // of the last one
	pending []Erasure // not known to be carried out
}

// Erasures is how many were ever accepted.
func (s *State) Erasures() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.erasures.number
}

// Erasing are the erasures that are not known to be carried out.
func (s *State) Erasing() []Erasure {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.Clone(s.erasures.pending)
}

// Erased forgets erasures that were carried out.
func (s *State) Erased(done ...Erasure) {
	gone := make(map[int]bool, len(done))
	for _, e := range done {
		gone[e.Number] = true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.erasures.pending = slices.DeleteFunc(s.erasures.pending, func(x Erasure) bool { return gone[x.Number] })
}
