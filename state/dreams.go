package state

import (
	"cmp"
	"slices"

	"aob.dev/writ/state/agents"
)

// dreams reports whether the plan is the dreaming agent's: it works on a session in the
// background and is no turn of it.
func (p *plan) dreams() bool { return p.View.Agent == agents.Dreaming }

// dreamEvery is the number of turns after which a session is dreamt of again.
const dreamEvery = 20

// Undreamt lists the sessions in which dreamEvery turns have ended since they were last dreamt
// of, each as its last turn. Turns count as long as their plans are retained.
func (s *State) Undreamt() (out []Silent) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	type session struct{ tenant, user, id string }
	turns, dreamt := map[session][]*plan{}, map[session]int64{}
	for _, p := range s.plans {
		at := session{p.View.TenantID, p.View.UserID, p.View.SessionID}
		switch {
		case p.dreams():
			dreamt[at] = max(dreamt[at], p.Opened)
		case p.View.Agent == agents.Client:
		case at.id != "" && p.View.Status.Ended():
			turns[at] = append(turns[at], p)
		}
	}
	for at, all := range turns {
		all = slices.DeleteFunc(all, func(p *plan) bool { return p.Opened < dreamt[at] })
		if len(all) >= dreamEvery {
			last := slices.MaxFunc(all, func(a, b *plan) int { return cmp.Compare(a.Opened, b.Opened) })
			out = append(out, last.silent())
		}
	}
	return out
}
