package gateway

import (
	"maps"
	"slices"
	"sync"
	"time"

	"aob.dev/writ/internal/bus"
)

// turn is one request of a user that a plan was opened for.
type turn struct {
	actor
	id, plan, question string
	epoch              int // of the plan, as last known
	opened             time.Time
	run                bool          // of a workflow, which its engine drives
	life               time.Duration // for which it may go on without its user
	settled            bool          // it is known to have ended
	driver, manager    string        // of the last hand-out, and the process that took it; empty: nobody yet
	adopted            bool          // another gateway has handed it out
}

// role is which role drives the plan.
func (t turn) role() string {
	if t.run {
		return "workflow"
	}
	return "manager"
}

// openTurns are the turns that this gateway has handed out, or adopted, and that are not known
// to have ended. They are kept only for their grants: turns lost with the process
// are found again by asking for plans without a driver.
type openTurns struct {
	mu     sync.Mutex
	m      map[string]*openTurn // by plan
	silent map[string]time.Time // plans of others whose drivers do not answer: since when
}

type openTurn struct {
	turn
	grantAt  time.Time // when its last grant was issued
	handedAt time.Time // when it was last handed out, or that was tried
	revision int       // of the graph of which its driver was told
}

func newOpenTurns() *openTurns {
	return &openTurns{m: make(map[string]*openTurn), silent: make(map[string]time.Time)}
}

// handed notes that a turn has just been handed out under a fresh grant.
func (o *openTurns) handed(t turn, now time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.m[t.plan] = &openTurn{turn: t, grantAt: now, handedAt: now}
	delete(o.silent, t.plan)
}

// silentFrom begins the clocks of all plans whose drivers this gateway does not know: whose driver answers
// loses it.
func (o *openTurns) silentFrom(these []bus.SilentPlan, now time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, p := range these {
		if _, known := o.silent[p.PlanID]; !known && o.m[p.PlanID] == nil {
			o.silent[p.PlanID] = now
		}
	}
}

// silentSince says since when the driver of a plan does not answer, which it does not now.
func (o *openTurns) silentSince(plan string, now time.Time) time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	since, known := o.silent[plan]
	if !known {
		since, o.silent[plan] = now, now
	}
	return since
}

// keepSilent forgets all silent plans but these.
func (o *openTurns) keepSilent(these []bus.SilentPlan) {
	o.mu.Lock()
	defer o.mu.Unlock()
	maps.DeleteFunc(o.silent, func(plan string, _ time.Time) bool {
		return !slices.ContainsFunc(these, func(p bus.SilentPlan) bool { return p.PlanID == plan })
	})
}

func (o *openTurns) forget(plan string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.m, plan)
}

// find gives the turn of a plan, if it is ours.
func (o *openTurns) find(plan string) (turn, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if t, ok := o.m[plan]; ok {
		return t.turn, true
	}
	return turn{}, false
}

// handedSince says whether a plan at an epoch was handed out after a time. A
// later epoch says that the hand-out was taken and is over.
func (o *openTurns) handedSince(plan string, epoch int, after time.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	t, ok := o.m[plan]
	return ok && t.epoch >= epoch && t.handedAt.After(after)
}

// news says whether the driver of a run of ours was not told of a revision; from now on it was.
func (o *openTurns) news(plan string, revision int) (turn, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	t, ok := o.m[plan]
	if !ok || t.manager == "" || t.revision >= revision {
		return turn{}, false
	}
	t.revision = revision
	return t.turn, true
}

// grantIssued notes a fresh grant.
func (o *openTurns) grantIssued(plan string, now time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if t, ok := o.m[plan]; ok {
		t.grantAt = now
	}
}

// grantedBefore lists the turns whose last grant is from before a time.
func (o *openTurns) grantedBefore(limit time.Time) []turn {
	o.mu.Lock()
	defer o.mu.Unlock()
	var out []turn
	for _, t := range o.m {
		if !t.grantAt.After(limit) {
			out = append(out, t.turn)
		}
	}
	return out
}
