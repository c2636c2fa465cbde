package state

import (
	"maps"
	"slices"
	"time"

	"aob.dev/writ/intents/catalog"
)

// PlanKept is how long a closed plan stays in the state. That is longer than its id may be used
// (intents.MaxIDAge), even by an intent that waits a day for approval.
const PlanKept = 48 * time.Hour

// leaving tracks the plans that are about to leave the state.
type leaving struct {
	closed []closedPlan // oldest first
	ended  []*plan      // closed ones whose last intent ended with this record
	left   []*plan      // that left with this record
	most   int          // most plans that the maps have had since they were made
}

type closedPlan struct {
	at   time.Time // time of its close
	plan *plan
}

// close inserts a closed plan in order of closing time.
func (l *leaving) close(p *plan, at time.Time) {
	i := len(l.closed)
	if i > 0 && l.closed[i-1].at.After(at) { // only if a clock stepped back
		i, _ = slices.BinarySearchFunc(l.closed, at, func(c closedPlan, at time.Time) int { return c.at.Compare(at) })
	}
	l.closed = slices.Insert(l.closed, i, closedPlan{at, p})
}

// passTo advances the time to a record's, which may be earlier if a clock stepped back.
func (s *State) passTo(at time.Time) {
	if at.After(s.last) {
		s.sweeps = s.sweeps || !at.Truncate(time.Hour).Equal(s.last.Truncate(time.Hour))
		s.last = at
	}
}

// sweep removes, each hour, what nothing can depend on any more: revocations of grants that have
// all ended, including those under which people have approved an intent that waits a day, and
// API keys that were revoked long ago.
func (s *State) sweep() {
	if !s.sweeps {
		return
	}
	s.sweeps = false
	s.sweepLabels()
	maps.DeleteFunc(s.revoked, func(_ string, before time.Time) bool { return s.removable(before) })
	maps.DeleteFunc(s.apiKeys, func(_ string, k apiKeyRow) bool { return k.Revoked && s.removable(k.At) })
}

// leave removes closed plans that were retained for PlanKept. It runs after every record: the
// records alone determine which plans are in the state.
func (s *State) leave() {
	s.leaving.left = nil
	s.sweep()
	s.leaving.most = max(s.leaving.most, len(s.plans))
	for len(s.leaving.closed) > 0 && s.removable(s.leaving.closed[0].at) {
		p := s.leaving.closed[0].plan
		s.leaving.closed[0] = closedPlan{}
		s.leaving.closed = s.leaving.closed[1:]
		s.drop(p)
	}
	if len(s.leaving.closed) == 0 {
		s.leaving.closed = nil
	}
	for _, p := range s.leaving.ended {
		s.drop(p)
	}
	s.leaving.ended = nil
	for len(s.transient) > 0 && s.removable(s.transient[0].At) {
		s.transient = s.transient[1:]
	}
	s.shrink()
}

// shrink copies the maps of plans once most of their plans have left, since a map never frees
// its memory.
func (s *State) shrink() {
	if s.leaving.most < 1024 || len(s.plans) > s.leaving.most/4 {
		return
	}
	s.plans, s.tasks, s.taskKID, s.leaving.most = cloneMap(s.plans), cloneMap(s.tasks), cloneMap(s.taskKID), len(s.plans)
	s.turns, s.requests, s.routed = cloneMap(s.turns), cloneMap(s.requests), cloneMap(s.routed)
}

func cloneMap[K comparable, V any](m map[K]V) map[K]V {
	out := make(map[K]V, len(m))
	maps.Copy(out, m)
	return out
}

// removable reports whether a plan that was closed at a time may leave.
func (s *State) removable(closed time.Time) bool { return !s.last.Before(closed.Add(PlanKept)) }

// drop removes a closed plan with its tasks and their keys. It stays while intents of it have
// not ended; the last outcome calls drop again.
func (s *State) drop(p *plan) {
	name := p.View.TenantID + "/" + p.View.PlanID
	if p.pending > 0 || s.plans[name] != p || !s.removable(*p.View.CompletedAt) {
		return
	}
	delete(s.plans, name)
	if s.requests[p.ofRequest()] == p {
		delete(s.requests, p.ofRequest())
	}
	if s.routed[p.inSession()] == p {
		delete(s.routed, p.inSession())
	}
	for _, t := range p.Tasks {
		delete(s.tasks, t.Tenant+"/"+t.ID)
		delete(s.taskKID, t.KID)
	}
	s.leaving.left = append(s.leaving.left, p)
}

// intentEnded counts the end of a plan's intent, unless it is indeterminate.
func (s *State) intentEnded(p *plan) {
	if p == nil {
		return
	}
	if p.pending--; p.pending == 0 && p.View.Status.Ended() {
		s.leaving.ended = append(s.leaving.ended, p)
	}
}

// PlanWithoutTexts is a plan as its last driver saw it. texts are the positions of the intents
// that contain its texts, in order; none if the plan still has them. A plan that left the state
// with the last record is returned once more. No decision may read it.
func (s *State) PlanWithoutTexts(tenant, id string) (p catalog.PlanView, texts []int64, ok bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	found := s.plans[tenant+"/"+id]
	for _, left := range s.leaving.left {
		if found == nil && left.View.TenantID == tenant && left.View.PlanID == id {
			found = left
		}
	}
	if found == nil {
		return p, nil, false
	}
	if found.View.Status.Ended() {
		texts = slices.Clone(found.Texts)
	}
	return found.shown(), texts, true
}
