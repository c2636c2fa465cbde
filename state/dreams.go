package state

import (
	"slices"

	"aob.dev/writ/agentic/agents"
)

// A plan of the dreaming agent works on a session in the background: it is no turn of it.
func (p *plan) dreams() bool { return p.View.Agent == agents.Dreaming }

// dreamEvery is after how many turns a session is dreamt of again.
const dreamEvery = 20

// Due are the sessions with dreamEvery turns that have ended since they were last dreamt
// of, each as its last turn. Turns count for as long as their plans are kept.
func (s *State) Due() []Silent {
	type name struct{ tenant, user, session string }
	type session struct {
		turns []*plan
		dream int64
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	of := map[name]*session{}
	for _, p := range s.plans {
		v := p.View
		at := name{v.TenantID, v.UserID, v.SessionID}
		if v.SessionID == "" || !final(v.Status) && !p.dreams() {
			continue
		}
		if of[at] == nil {
			of[at] = &session{}
		}
		if p.dreams() {
			of[at].dream = max(of[at].dream, p.Opened)
		} else {
			of[at].turns = append(of[at].turns, p)
		}
	}
	var out []Silent
	for _, x := range of {
		x.turns = slices.DeleteFunc(x.turns, func(p *plan) bool { return p.Opened < x.dream })
		if len(x.turns) < dreamEvery {
			continue
		}
		last := slices.MaxFunc(x.turns, func(a, b *plan) int { return int(a.Opened - b.Opened) })
		out = append(out, Silent{last.shown(), last.Roles, last.Client, last.Trace})
	}
	return out
}
