package state

import (
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/storage"
)

// Content is a record that was read already. One of its pointers is set; for a takeover
// or a refused order none has to be.
type Content struct {
	Position int64
	At       time.Time

	Control *Control
	Order   *Order
	Outcome *intents.Outcome
	Of      int64 // the order that the outcome ends
	Release *Release
}

// Take folds a record that was read already, as Observe folds it unread: for states that
// follow records of others. An error means that no router can have written the record on
// this state; more records may be folded nevertheless.
func (s *State) Take(c Content) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.leave()
	s.next = c.Position + 1
	s.passTo(c.At)
	switch {
	case c.Control != nil:
		return s.control(*c.Control, c.Position)
	case c.Order != nil && c.Order.Decision.Verdict != intents.Deny:
		return s.accepted(*c.Order)
	case c.Outcome != nil:
		return s.ended(c.Of, *c.Outcome, c.At)
	case c.Release != nil:
		return s.release(*c.Release, c.Position, c.At)
	default:
		return nil
	}
}

// Released is a held order of the router as it is judged at its release.
func (h Hold) Released(rel Release, at time.Time) Order {
	return releasedOrder(h.Order, rel, storage.Nobody, at)
}
