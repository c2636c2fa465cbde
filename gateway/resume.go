package gateway

import (
	"context"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"

	"aob.dev/writ/intents"
	"aob.dev/writ/internal/bus"
	"aob.dev/writ/internal/problem"
)

// resumeSilent hands out again the plans that nobody drives: those from before a
// crash, and those whose held order has its outcome. The user is not there, so the
// grant is a standing one: the roles of the first grant, cut to those that key and
// user have now, for this plan only, and for at most a day after it was opened, a run
// for the days of its definition.
//
// A crash in here leaves the plan silent, to be found again. Two gateways may
// hand the same plan out: the manager's plan.claim lets one driver through.
func (g *Gateway) resumeSilent(ctx context.Context) {
	reply, err := ask[bus.SilentReply](ctx, g.cfg.Bus, bus.PlansSilent, bus.SilentRequest{})
	if err != nil {
		if ctx.Err() == nil && problem.Of(err).Code != intents.DispatchUnavailable { // a router that is not there yet is no news
			g.cfg.Log.WarnContext(ctx, "ask for plans without a driver", slog.String("error", err.Error()))
		}
		return
	}
	g.fireDue(ctx, reply.Due)
	g.turns.keepSilent(reply.Claimed)
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
		if _, err := ask[bus.FreshGrantReply](ctx, g.cfg.Bus, bus.Grant(t.role(), t.manager), patched); err != nil && ctx.Err() == nil { // it sees the graph when the next node ends
			g.cfg.Log.WarnContext(ctx, "tell of a patch", slog.String("run_id", t.plan), slog.String("error", err.Error()))
		}
	}
	g.dreamOf(ctx, reply.Dreams)
	g.endLeft(ctx, reply.Left)
}

// atOnce bounds how many plans or schedules are looked at side by side. One whose process does not answer
// holds up none of the others.
const atOnce = 64

func besideEachOther[T any](all []T, do func(T)) {
	var g errgroup.Group
	g.SetLimit(atOnce)
	for _, x := range all {
		g.Go(func() error { do(x); return nil })
	}
	_ = g.Wait()
}

// resumeUnclaimed hands a plan out that nobody has claimed, unless that was done a moment ago.
func (g *Gateway) resumeUnclaimed(ctx context.Context, p bus.SilentPlan) error {
	now := g.cfg.Now()
	if now.Sub(p.OpenedAt) > lifeOf(p.Days) || g.turns.handedSince(p.PlanID, p.Epoch, now.Add(-g.pace.again)) {
		return nil
	}
	return g.resumePlan(ctx, p)
}

// resumeLost hands a plan out again whose driver has died: its process is not there, or does
// not know it. A process that does not answer may be held, and is left its plan.
func (g *Gateway) resumeLost(ctx context.Context, p bus.SilentPlan) error {
	t, known := g.turns.find(p.PlanID)
	if p.Epoch == 0 || known && g.turns.handedSince(p.PlanID, p.Epoch, g.cfg.Now().Add(-g.pace.again)) {
		return nil
	}
	if !known || t.manager == "" || p.Epoch > t.epoch+1 { // another gateway has handed it out
		return g.adopt(ctx, p, false)
	}
	reply, err := ask[bus.FreshGrantReply](ctx, g.cfg.Bus, bus.Grant(t.role(), t.manager), bus.FreshGrant{PlanID: t.plan, Driver: t.driver})
	switch {
	case err == nil && reply.Taken || err != nil && problem.Of(err).Code != intents.DispatchUnavailable:
		return nil
	case t.adopted:
		return g.adopt(ctx, p, true)
	}
	return g.resumePlan(ctx, p)
}

// drivingTime is how long a driver has to answer.
const drivingTime = time.Second

// adopt a plan that another gateway has handed out, which may be gone: whoever drives it gets
// its grants from here, too. If nobody says that he does, and the driver is gone or the last
// grant of that gateway has surely run out, it is handed out again: a driver that was held until
// then can do nothing any more.
func (g *Gateway) adopt(ctx context.Context, p bus.SilentPlan, gone bool) error {
	now := g.cfg.Now()
	if now.Sub(p.OpenedAt) > lifeOf(p.Days) {
		return nil
	}
	t := turnOf(p)
	asking, cancel := context.WithTimeout(ctx, drivingTime)
	defer cancel()
	reply, err := ask[bus.DrivingReply](asking, g.cfg.Bus, bus.Driving(t.role()), bus.DrivingRequest{PlanID: p.PlanID})
	switch {
	case err == nil:
		t.roles, t.driver, t.manager, t.adopted = p.Roles, reply.Driver, reply.Instance, true
		g.turns.handed(t, time.Time{}) // a grant of it is due
		return nil
	case problem.Of(err).Code != intents.ExecutorTimeout:
		return nil // nobody could drive it now
	}
	if !gone && now.Sub(g.turns.silentSince(p.PlanID, now)) <= intents.MaxGrantLife {
		return nil
	}
	return g.resumePlan(ctx, p)
}

// turnOf is a plan's turn without roles.
func turnOf(p bus.SilentPlan) turn {
	return turn{
		actor: actorOf(p),
		id:    p.TurnID, plan: p.PlanID, question: p.Task, epoch: p.Epoch, opened: p.OpenedAt, run: p.Run, life: lifeOf(p.Days),
	}
}

// actorOf is who opened a plan, without roles.
func actorOf(p bus.SilentPlan) actor {
	return actor{tenant: p.Tenant, user: p.UserID, session: p.SessionID, keyID: intents.KeyOfClient(p.Client), trace: p.TraceID}
}

func (g *Gateway) resumePlan(ctx context.Context, p bus.SilentPlan) error {
	t := turnOf(p)
	g.turns.handed(t, g.cfg.Now()) // tried, whatever comes of it: not again at once
	roles, err := g.rolesOf(ctx, t.actor, p.Roles)
	if err != nil {
		return err
	}
	t.roles = roles
	grant, _, err := g.issueGrant(t.actor, t.id, t.plan)
	if err != nil {
		return err
	}
	return g.handOut(ctx, t, grant)
}
