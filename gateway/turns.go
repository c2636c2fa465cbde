package gateway

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"aob.dev/writ/bus"
	"aob.dev/writ/intents"
	"aob.dev/writ/internal/problem"
)

// turn is one request of a user for which a plan was opened.
type turn struct {
	actor
	id, plan        string
	epoch           int // of the plan, as last known
	opened          time.Time
	images          []string      // of the request, for its first dispatch
	run             bool          // of a workflow, run by its engine
	routed          bool          // request routing chooses its agent
	life            time.Duration // how long it may go on without its user
	ended           bool          // it is known to have ended
	driver, manager string        // of the last dispatch, and the process that accepted it; empty: none yet
	adopted         bool          // another gateway has dispatched it
	frontEnd        bool          // a chat front end has asked for it
}

// role returns the role that runs the plan.
func (t turn) role() string {
	if t.run {
		return "workflow"
	}
	return "manager"
}

// openTurns are the turns that this gateway has dispatched, or adopted, and that are not known to
// have ended. They are retained only for their grants: turns lost with the process are found
// again by requesting plans without a driver.
type openTurns struct {
	mu     sync.Mutex
	m      map[string]*openTurn // by plan
	silent map[string]time.Time // plans of others whose drivers do not answer, with the time since
}

type openTurn struct {
	turn
	grantAt  time.Time // when its last grant was issued
	handedAt time.Time // when it was last dispatched, or that was tried
	revision int       // of the graph reported to its driver
}

func newOpenTurns() *openTurns {
	return &openTurns{m: make(map[string]*openTurn), silent: make(map[string]time.Time)}
}

// handed records that a turn has just been dispatched under a fresh grant.
func (o *openTurns) handed(t turn, now time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.m[t.plan] = &openTurn{turn: t, grantAt: now, handedAt: now}
	delete(o.silent, t.plan)
}

// silentFrom starts the clocks of the plans whose drivers this gateway does not know, and drops
// those of all others; the clock of a driver that answers is removed.
func (o *openTurns) silentFrom(these []bus.SilentPlan, now time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	maps.DeleteFunc(o.silent, func(plan string, _ time.Time) bool {
		return !slices.ContainsFunc(these, func(p bus.SilentPlan) bool { return p.PlanID == plan })
	})
	for _, p := range these {
		if _, known := o.silent[p.PlanID]; !known && o.m[p.PlanID] == nil {
			o.silent[p.PlanID] = now
		}
	}
}

// silentSince returns the time since when the driver of a plan has not answered.
func (o *openTurns) silentSince(plan string, now time.Time) time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	since, known := o.silent[plan]
	if !known {
		since, o.silent[plan] = now, now
	}
	return since
}

func (o *openTurns) forget(plan string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.m, plan)
}

// find returns the turn of a plan, if it is this gateway's.
func (o *openTurns) find(plan string) (turn, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if t, ok := o.m[plan]; ok {
		return t.turn, true
	}
	return turn{}, false
}

// handedSince reports whether a plan at an epoch was dispatched after a time. A later epoch means
// that the dispatch was accepted and has ended.
func (o *openTurns) handedSince(plan string, epoch int, after time.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	t, ok := o.m[plan]
	return ok && t.epoch >= epoch && t.handedAt.After(after)
}

// news reports whether the driver of a run of this gateway has not been notified of a revision;
// from now on it counts as notified.
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

// grantIssued records a fresh grant.
func (o *openTurns) grantIssued(plan string, now time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if t, ok := o.m[plan]; ok {
		t.grantAt = now
	}
}

// grantedBefore lists the turns whose last grant was issued before a time.
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

// dispatch gives a turn to a manager, or a run to a workflow engine, and records it as this
// gateway's. Each dispatch has a driver of its own: if two drivers have one plan, plan.claim
// decides.
func (g *Gateway) dispatch(ctx context.Context, t turn, grant string) error {
	now := g.cfg.Now()
	t.driver = newID("driver")
	reply, err := ask[bus.PlanDispatchReply](ctx, g.cfg.Bus, bus.Agent(t.role()), bus.PlanDispatch{
		TurnRef: t.turnRef(t.id, t.plan, grant), Driver: t.driver, Epoch: t.epoch, Images: t.images,
	})
	t.images = nil // nobody keeps them
	switch p := problem.FromError(err); {
	case err == nil && reply.Accepted:
		t.manager = reply.Instance
		g.turns.handed(t, now)
		return nil
	case err == nil && reply.Code != "":
		return problem.New(intents.Code(reply.Code), "", reply.Reason)
	case err == nil:
		return problem.New(intents.Overloaded, "", "the "+t.role()+" takes no more plans")
	case p.Code == intents.DispatchUnavailable:
		return problem.New(p.Code, "", "no "+t.role()+" is there")
	case p.Code == intents.ExecutorTimeout:
		return problem.New(p.Code, "", "the "+t.role()+" does not answer")
	default:
		return err
	}
}
