package state

import (
	"maps"
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
		e := Erasure{Number: s.erasures.number, Tenant: TargetTenant(o.Tenant, a.Tenant), Position: a.Position, Parts: a.Parts}
		s.erasures.pending = append(s.erasures.pending, e)
		s.erasures.explain(e)
		if !slices.Contains(a.Parts, catalog.ErasesEnvelope) {
			return nil
		}
		for _, p := range s.plans {
			if p.View.TenantID == e.Tenant && slices.Contains(p.Texts, a.Position) {
				p.removeTexts()
			}
			for _, f := range p.IntentHistory {
				if p.View.TenantID == e.Tenant && f.IntentID == a.IntentID {
					f.erase()
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

// Erasure is what an accepted record.erase or user.erase removes.
type Erasure struct {
	Number   int      // in the order of the records, from 1; 0: none of State's
	Tenant   string   // of the intents that it is about
	User     string   `json:",omitempty"` // of a user.erase: the user
	Position int64    // of the intent; of a user.erase: where it takes effect
	Parts    []string // as a record.erase names them
}

// Takes reports whether the erasure removes a part, as a record.erase names it, of an intent's
// records. user is the intent's, "tenant/user_id", and is asked only where that matters.
func (e Erasure) Takes(part string, intent int64, user func() string) bool {
	if !slices.Contains(e.Parts, part) {
		return false
	}
	if e.User == "" {
		return e.Position == intent
	}
	return intent < e.Position && user() == e.Tenant+"/"+e.User
}

// erasures are the pending ones, in the order of the records.
type erasures struct {
	number  int       // of the last erasure
	pending []Erasure // not known to be carried out
	// unexplained are the parts that records have lost and no erasure has named yet, by the
	// position of the intent.
	unexplained map[int64]lostParts
	last        storage.Record // the newest intent's
}

// lostParts are what an intent's records have lost.
type lostParts struct {
	Parts []string `json:"parts"` // as a record.erase names them
	User  string   `json:"user"`  // of the intent, "tenant/user_id"; empty: not known
}

// missing notes the parts that a record has lost.
func (s *State) missing(e storage.Entry) {
	if e.Record.Kind == storage.KindIntent {
		s.erasures.last = e.Record
	}
	if len(e.Record.Erased) == 0 || e.Lost {
		return
	}
	intent := e.Record.Position
	if e.Record.Kind == storage.KindOutcome {
		intent = e.Target
	}
	x := s.erasures.unexplained[intent]
	for name, parts := range ErasedParts[e.Record.Kind] {
		if slices.ContainsFunc(parts, func(part string) bool { return e.Record.Erased[part] != "" }) {
			x.Parts = append(x.Parts, name)
		}
	}
	if len(x.Parts) == 0 {
		return // texts beside an intent end with their use
	}
	if open := s.intents[intent]; x.User == "" && open != nil {
		x.User = open.Tenant + "/" + open.User
	}
	if last := s.erasures.last; x.User == "" && last.Position == intent {
		if b, err := last.Body(); err == nil {
			x.User = b.Actor.Tenant + "/" + b.Actor.UserID
		}
	}
	s.erasures.unexplained[intent] = x
}

// explain forgets the parts that an erasure names.
func (x *erasures) explain(e Erasure) {
	at := []int64{e.Position}
	if e.User != "" {
		at = slices.Collect(maps.Keys(x.unexplained))
	}
	for _, intent := range at {
		lost := x.unexplained[intent]
		user := func() string { return lost.User }
		lost.Parts = slices.DeleteFunc(lost.Parts, func(name string) bool { return e.Takes(name, intent, user) })
		if x.unexplained[intent] = lost; len(lost.Parts) == 0 {
			delete(x.unexplained, intent)
		}
	}
}

// Unexplained is what an intent has lost without an erasure: the log was restored from a copy
// that is older than its keys, or somebody destroyed these.
type Unexplained struct {
	Position int64    // of the intent
	Parts    []string // as a record.erase names them
}

// Unexplained returns how many intents have lost parts that no erasure names, and the first
// of them, at most limit. A part that is lost by damage is none of them (storage.Entry).
func (s *State) Unexplained(limit int) (first []Unexplained, all int) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if all = len(s.erasures.unexplained); all == 0 {
		return nil, 0
	}
	for _, at := range slices.Sorted(maps.Keys(s.erasures.unexplained)) {
		if len(first) < limit {
			first = append(first, Unexplained{at, slices.Clone(s.erasures.unexplained[at].Parts)})
		}
	}
	return first, all
}

// IsUnexplained reports whether the intent at a position has lost all of these parts, as a
// record.erase names them, and no erasure says so.
func (s *State) IsUnexplained(position int64, parts ...string) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	gone := s.erasures.unexplained[position].Parts
	return !slices.ContainsFunc(parts, func(name string) bool { return !slices.Contains(gone, name) })
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
