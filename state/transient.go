package state

import (
	"encoding/json"
	"slices"
	"time"

	"aob.dev/writ/storage"
)

// endedTransient are the texts beside an intent whose use has ended.
type endedTransient struct {
	Position int64     `json:"position"` // of the intent's record
	At       time.Time `json:"at"`       // end of its plan
}

// transientOf is the position of an intent's record if texts travelled beside it; 0: none did.
func transientOf(o Intent) int64 {
	if len(TransientDigests(o.Type, o.Args)) == 0 {
		return 0
	}
	return o.Recorded
}

// TransientDigests are the digests of the texts that belong beside an intent, by name; nil: none
// do, or the arguments are malformed.
func TransientDigests(typ string, args json.RawMessage) map[string]string {
	var a struct {
		Transient map[string]string `json:"transient"`
	}
	if typ != TypePlanOpen || json.Unmarshal(args, &a) != nil {
		return nil
	}
	return a.Transient
}

// endTransient notes that nothing needs the texts beside an intent any more. Position 0 has none.
func (s *State) endTransient(position int64, at time.Time) {
	if position > 0 {
		s.transient = append(s.transient, endedTransient{position, at})
	}
}

// EndedTransient are the positions of records whose texts beside the envelope are to be destroyed,
// because their plan has ended or was never opened. They stay for PlanKept, or until
// ForgetTransient.
func (s *State) EndedTransient() (positions []int64) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, e := range s.transient {
		positions = append(positions, e.Position)
	}
	return positions
}

// ForgetTransient removes positions whose texts were destroyed.
func (s *State) ForgetTransient(positions []int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.transient = slices.DeleteFunc(s.transient, func(e endedTransient) bool { return slices.Contains(positions, e.Position) })
}

// RetainedTransient are the positions of records whose texts beside the envelope may not be missing:
// their plan is open, or waits for approval to be opened.
func (s *State) RetainedTransient() map[int64]bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	out := make(map[int64]bool)
	for _, p := range s.plans {
		if p.Transient > 0 {
			out[p.Transient] = true
		}
	}
	for _, h := range s.holds.waiting {
		if at := transientOf(h.Intent); at > 0 {
			out[at] = true
		}
	}
	return out
}

// Transient is the position of the record with the texts beside the opening of an open plan;
// storage.NoPosition: it has none.
func (s *State) Transient(tenant, planID string) int64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if p := s.plans[tenant+"/"+planID]; p != nil && p.Transient > 0 {
		return p.Transient
	}
	return storage.NoPosition
}
