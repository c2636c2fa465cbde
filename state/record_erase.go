package state

import (
	"encoding/json"
	"slices"

	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/storage"
)

// recordErase removes parts of an intent from its records. It takes effect at its own position:
// from there on no reader may show them. Before the commit it is checked whether the intent's
// records allow it.
var recordErase = operators(TypeErase,
	func(v *View, o Intent, a catalog.RecordErase) (Effect, error) {
		v.addRead(SubjectIntent(a.IntentID))
		if x, open := v.s.unknown[a.IntentID]; open && x.Tenant == TargetTenant(o.Tenant, a.Tenant) {
			return Effect{}, illegal("/intent/args/intent_id", "nobody knows how the intent ended: resolve it first")
		}
		return Effect{catalog.EraseResult{Accepted: true, Remaining: catalog.RemainingCopies(a.Parts)}, []storage.Subject{SubjectIntent(a.IntentID)}}, nil
	},
	func(s *State, o Intent, a catalog.RecordErase) error {
		s.erasures.number++
		e := Erasure{s.erasures.number, TargetTenant(o.Tenant, a.Tenant), a.Position, a.Parts}
		s.erasures.pending = append(s.erasures.pending, e)
		if !slices.Contains(a.Parts, catalog.ErasesEnvelope) {
			return nil
		}
		for _, p := range s.plans {
			if p.View.TenantID == e.Tenant && slices.Contains(p.Texts, a.Position) {
				p.removeTexts()
			}
			for _, f := range p.IntentHistory {
				if p.View.TenantID == e.Tenant && f.IntentID == a.IntentID {
					f.Args, f.Digest, f.Erased = json.RawMessage(`{}`), "", true
				}
			}
		}
		return nil
	})

// ErasedParts are the parts of a record that each name in a record.erase removes.
var ErasedParts = map[storage.Kind]map[string][]string{
	storage.KindIntent:  {catalog.ErasesEnvelope: storage.ErasableParts[storage.KindIntent]},
	storage.KindOutcome: {catalog.ErasesResult: storage.ErasableParts[storage.KindOutcome]},
}

// Erasure is what an accepted record.erase removes.
type Erasure struct {
	Number   int    // in the order of the records, from 1; 0: none of State's
	Tenant   string // of the intent that it is about
	Position int64
	Parts    []string // as the intent names them
}

// erasures are the pending ones, in the order of the records.
type erasures struct {
	number  int       // of the last erasure
	pending []Erasure // not known to be carried out
}

// Erasures is the number of erasures ever accepted.
func (s *State) Erasures() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.erasures.number
}

// Erasing returns the erasures that are not known to be carried out.
func (s *State) Erasing() []Erasure {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.Clone(s.erasures.pending)
}

// ForgetErasures removes erasures that were carried out.
func (s *State) ForgetErasures(done ...Erasure) {
	gone := make(map[int]bool, len(done))
	for _, e := range done {
		gone[e.Number] = true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.erasures.pending = slices.DeleteFunc(s.erasures.pending, func(x Erasure) bool { return gone[x.Number] })
}
