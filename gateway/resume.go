package gateway

import (
	"context"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"

	"aob.dev/writ/bus"
	"aob.dev/writ/intents"
	"aob.dev/writ/internal/problem"
)

// resumeSilent dispatches again the plans without a driver: those from before a crash, and those
// whose intent has its outcome after an approval. The user is not present, so the grant is a
// standing one: the roles of the first grant, cut to those that key and user have now, for this
// plan only, and for at most a day after it was opened, a run for the days of its definition.
//
// A crash in here leaves the plan silent, to be found again. Two gateways may dispatch the same
// plan: the manager's plan.claim lets one driver through.
func (g *Gateway) resumeSilent(ctx context.Context) {
	reply, err := askRouter[bus.SilentReply](ctx, g.cfg.Bus, bus.PlansSilent, bus.SilentRequest{})
	if err != nil {
		if ctx.Err() == nil && problem.FromError(err).Code != intents.DispatchUnavailable { // a router that is still starting is not logged
			g.cfg.Log.WarnContext(ctx, "ask for plans without a driver", slog.String("error", err.Error()))
		}
		return
	}
	g.fireDue(ctx, reply.Due)
	g.turns.silentFrom(reply.Claimed, g.cfg.Now())
	resumed := func(resume func(context.Context, bus.SilentPlan) error) func(bus.SilentPlan) {
		return func(p bus.SilentPlan) {
			if err := resume(ctx, p); err != nil && ctx.Err() == nil {
				g.cfg.Log.WarnContext(ctx, "hand out again", slog.String("plan_id", p.PlanID), slog.String("trace_id", p.TraceID), slog.String("error", err.Error()))
			}
		}
	}
	besideEachOther(reply.Plans, resumed(g.resumeUnclaimed))
	besideEachOther(reply.Claimed, resumed(g.resumeLost))
	for _, p := range reply.Patched {
		t, news := g.turns.news(p.PlanID, p.Revision)
		if !news {
			continue
		}
		patched := bus.FreshGrant{PlanID: t.plan, Driver: t.driver, Patched: true}
		if _, err := ask[bus.FreshGrantReply](ctx, g.cfg.Bus, bus.Grant(t.role(), t.manager), patched); err != nil && ctx.Err() == nil { // otherwise it sees the graph when the next node ends
			g.cfg.Log.WarnContext(ctx, "tell of a patch", slog.String("run_id", t.plan), slog.String("error", err.Error()))
		}
	}
	g.dreamOf(ctx, reply.Dreams)
	g.endLeft(ctx, reply.Abandoned)
}

// atOnce bounds how many plans or schedules are handled concurrently. One whose process does not
// answer delays none of the others.
const atOnce = 64

func besideEachOther[T any](all []T, do func(T)) {
	var g errgroup.Group
	g.SetLimit(atOnce)
	for _, x := range all {
		g.Go(func() error { do(x); return nil })
	}
	_ = g.Wait()
}

// resumeUnclaimed dispatches a plan that nobody has claimed, unless that was done a moment ago.
func (g *Gateway) resumeUnclaimed(ctx context.Context, p bus.SilentPlan) error {
	now := g.cfg.Now()
	if now.Sub(p.OpenedAt) > lifeOf(p.Days) || g.turns.handedSince(p.PlanID, p.Epoch, now.Add(-g.pace.redispatch)) {
		return nil
	}
	return g.resumePlan(ctx, p)
}

// resumeLost dispatches a plan again whose driver has died: its process does not exist, or does
// not know it. A process that does not answer may be suspended, and retains its plan.
func (g *Gateway) resumeLost(ctx context.Context, p bus.SilentPlan) error {
	t, known := g.turns.find(p.PlanID)
	if p.Epoch == 0 || known && g.turns.handedSince(p.PlanID, p.Epoch, g.cfg.Now().Add(-g.pace.redispatch)) {
		return nil
	}
	if !known || t.manager == "" || p.Epoch > t.epoch+1 { // another gateway has dispatched it
		return g.adopt(ctx, p, false)
	}
	reply, err := ask[bus.FreshGrantReply](ctx, g.cfg.Bus, bus.Grant(t.role(), t.manager), bus.FreshGrant{PlanID: t.plan, Driver: t.driver})
	switch {
	case err == nil && reply.Accepted || err != nil && problem.FromError(err).Code != intents.DispatchUnavailable:
		return nil
	case t.adopted:
		return g.adopt(ctx, p, true)
	}
	return g.resumePlan(ctx, p)
}

// findRunTimeout bounds the wait for a driver's answer.
const findRunTimeout = time.Second

// adopt takes over a plan that another gateway has dispatched and may no longer serve: the driver
// gets its grants from here, too. If no driver answers, and the driver is gone or the last grant
// of that gateway has certainly expired, the plan is dispatched again: a driver suspended until
// then can do nothing any more.
func (g *Gateway) adopt(ctx context.Context, p bus.SilentPlan, gone bool) error {
	now := g.cfg.Now()
	if now.Sub(p.OpenedAt) > lifeOf(p.Days) {
		return nil
	}
	t := turnOf(p)
	asking, cancel := context.WithTimeout(ctx, findRunTimeout)
	defer cancel()
	reply, err := ask[bus.FindRunReply](asking, g.cfg.Bus, bus.FindRun(t.role()), bus.FindRunRequest{PlanID: p.PlanID})
	switch {
	case err == nil:
		t.roles, t.driver, t.manager, t.adopted = p.Roles, reply.Driver, reply.Instance, true
		g.turns.handed(t, time.Time{}) // a grant of it is due
		return nil
	case problem.FromError(err).Code != intents.ExecutorTimeout:
		return nil // no driver could run it now
	}
	if !gone && now.Sub(g.turns.silentSince(p.PlanID, now)) <= intents.MaxGrantLife {
		return nil
	}
	return g.resumePlan(ctx, p)
}

// turnOf returns a plan's turn without roles.
func turnOf(p bus.SilentPlan) turn {
	return turn{
		actor: actorOf(p),
		id:    p.TurnID, plan: p.PlanID, epoch: p.Epoch, opened: p.OpenedAt, run: p.Run, life: lifeOf(p.Days),
	}
}

// actorOf returns the user who opened a plan, without roles.
func actorOf(p bus.SilentPlan) actor {
	return actor{tenant: p.Tenant, user: p.UserID, session: p.SessionID, keyID: intents.CallerOf(p.Client), trace: p.TraceID}
}

func (g *Gateway) resumePlan(ctx context.Context, p bus.SilentPlan) error {
	t := turnOf(p)
	g.turns.handed(t, g.cfg.Now()) // tried, whatever the result: not again at once
	roles, err := g.rolesOf(ctx, t.actor, p.Roles)
	if err != nil {
		return err
	}
	t.roles = roles
	grant, _, err := g.issueGrant(t.actor, t.id, t.plan)
	if err != nil {
		return err
	}
	return g.dispatch(ctx, t, grant)
}
