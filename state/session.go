package state

import (
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/storage"
)

// A session has one open turn: its plan takes the session when it is opened, and frees it when
// it ends or waits for approval. A request opens one plan, however often it is sent.

// How long a request is answered with its plan: with a key from the plan's opening, for a
// client's resend from the plan's close.
const (
	requestKept = 24 * time.Hour
	retryKept   = 10 * time.Minute
)

// inSession names the session of a plan; empty if it has none.
func (p *plan) inSession() string {
	if p.View.SessionID == "" {
		return ""
	}
	return p.View.TenantID + "/" + p.View.UserID + "/" + p.View.SessionID
}

// ofRequest names the request that opened a plan; empty if none is known.
func (p *plan) ofRequest() string {
	if p.Request == "" {
		return ""
	}
	return p.View.TenantID + "/" + p.View.UserID + "/" + p.Request
}

// turnSubjects are the session and the request of a plan.
func (p *plan) turnSubjects() []storage.Subject {
	var out []storage.Subject
	if v := p.View; v.SessionID != "" {
		out = append(out, subjectSession(v.TenantID, v.UserID, v.SessionID))
	}
	if name := p.ofRequest(); name != "" {
		out = append(out, storage.Subject("request/"+name))
	}
	return out
}

// subjectSession is the open turn of a session.
func subjectSession(tenant, user, session string) storage.Subject {
	return storage.Subject("session/" + tenant + "/" + user + "/" + session)
}

// mayTurn checks whether a plan may be opened: its request has opened none, and no turn of its
// session is open. A turn that waits for approval has informed its user and takes no session,
// nor does one that dreams, or a client's plan.
func (v *View) mayTurn(o Intent, p *plan, a catalog.PlanOpen) error {
	for _, subject := range p.turnSubjects() {
		v.addRead(subject)
	}
	if before := v.s.requests[p.ofRequest()]; before != nil && before.answers(a.Request.Kind, o.Now) {
		return busy("/intent/args/request", "the request has opened a plan before", before)
	}
	if open := v.s.turns[p.inSession()]; open != nil && v.s.takesTurn(p, o.Released) {
		return busy("/context/session_id", "the session has an open turn", open)
	}
	return nil
}

// answers reports whether a request of a kind is answered by this plan, which an equal one
// opened. A plan that nobody claimed answers none.
func (p *plan) answers(kind string, now time.Time) bool {
	switch closed := p.View.CompletedAt; {
	case !p.View.Status.Ended():
		return true
	case p.View.Epoch == 0:
		return false
	case kind == catalog.RequestKey:
		return now.Before(p.View.CreatedAt.Add(requestKept))
	case kind == catalog.RequestRetry:
		return now.Before(closed.Add(retryKept))
	default:
		return false
	}
}

func busy(pointer, reason string, p *plan) error {
	r := intents.Refuse(intents.SessionBusy, pointer, reason+": "+p.View.PlanID)
	r.PlanID = p.View.PlanID
	return r
}

// takeTurn makes a plan the open turn of its session, and records its request.
func (s *State) takeTurn(p *plan, released bool) {
	p.Turning = p.View.SessionID != "" && s.takesTurn(p, released)
	s.putTurn(p)
}

// takesTurn reports whether a plan, released by people or not, is a turn of its session.
func (s *State) takesTurn(p *plan, released bool) bool {
	return !released && !p.dreams() && !p.ofClient()
}

// putTurn adds a plan to the indices of sessions and requests.
func (s *State) putTurn(p *plan) {
	if p.Turning {
		s.turns[p.inSession()] = p
	}
	if name := p.ofRequest(); name != "" {
		if other := s.requests[name]; other == nil || other.Opened < p.Opened {
			s.requests[name] = p
		}
	}
}

// freeSession lets the next turn of a plan's session begin.
func (s *State) freeSession(p *plan) {
	if p.Turning {
		p.Turning = false
		delete(s.turns, p.inSession())
	}
}
