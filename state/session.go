package state

import (
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/storage"
)

// A session has one open turn: its plan takes the session when it is opened, and frees it
// when it ends or waits for people. A request opens one plan, however often it is sent.

// How long a request stands for its plan: with a key since the plan was opened, by the
// word of a client that sends it again since the plan was closed.
const (
	requestKept = 24 * time.Hour
	retryKept   = 10 * time.Minute
)

// inSession names the session of a plan; empty: it has none.
func (p *plan) inSession() string {
	if p.View.SessionID == "" {
		return ""
	}
	return p.View.TenantID + "/" + p.View.UserID + "/" + p.View.SessionID
}

// ofRequest names the request that opened a plan; empty: nobody said.
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

// mayTurn says whether a plan may be opened: its request has opened none, and no turn of
// its session is open. One that waited for people has told its user so, and takes no
// session, and neither does one that dreams, or that of a client.
func (v *View) mayTurn(o Order, p *plan, a catalog.PlanOpen) error {
	for _, subject := range p.turnSubjects() {
		v.rely(subject)
	}
	if v.s.rules < intents.RulesAgents {
		return nil
	}
	if before := v.s.requests[p.ofRequest()]; before != nil && before.answers(a.Request.Kind, o.Now) {
		return busy("/intent/args/request", "the request has opened a plan before", before)
	}
	if open := v.s.turns[p.inSession()]; open != nil && v.s.takesTurn(p, o.Released) {
		return busy("/context/session_id", "the session has an open turn", open)
	}
	return nil
}

// answers says whether a request of a kind means this plan, which an equal one opened. A
// plan that nobody took answers nothing.
func (p *plan) answers(kind string, now time.Time) bool {
	switch closed := p.View.CompletedAt; {
	case !final(p.View.Status):
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

// takeTurn gives a plan its session, and its request to it.
func (s *State) takeTurn(p *plan, released bool) {
	if s.rules < intents.RulesAgents {
		return
	}
	p.Turning = p.View.SessionID != "" && s.takesTurn(p, released)
	s.putTurn(p)
}

// takesTurn says whether a plan, released by people or not, is a turn of its session.
func (s *State) takesTurn(p *plan, released bool) bool {
	return !released && (s.rules < intents.RulesAsks || !p.dreams() && !p.ofClient())
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
