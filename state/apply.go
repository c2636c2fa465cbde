package state

import (
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/storage"
)

// Content is a record that was already read. One of its pointers is set; for a takeover or a
// refused intent none has to be.
type Content struct {
	Position int64
	At       time.Time

	Control *Control
	Intent  *Intent
	Outcome *intents.Outcome
	Target  int64 // the intent that the outcome ends
	Release *Release
}

// Take applies a record that was already read, as Observe applies an unread one: for states that
// follow another state's records. An error means that no router can have written the record on
// this state; further records may still be applied.
func (s *State) Take(c Content) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.leave()
	s.next = c.Position + 1
	s.passTo(c.At)
	switch {
	case c.Control != nil:
		return s.control(*c.Control, c.Position)
	case c.Intent != nil && c.Intent.Decision.Verdict != intents.Deny:
		return s.accepted(*c.Intent)
	case c.Outcome != nil:
		return s.ended(c.Target, *c.Outcome, c.At)
	case c.Release != nil:
		return s.release(*c.Release, c.Position, c.At)
	default:
		return nil
	}
}

// ReleasedIntent is a held intent of the router as it is judged at its release.
func (h Hold) ReleasedIntent(rel Release, at time.Time) Intent {
	return releasedIntent(h.Intent, rel, storage.NoPosition, at)
}
