package gateway

import (
	"context"
	"log/slog"

	"aob.dev/writ/bus"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/state/agents"
)

// dreamTask is the request to the dreaming agent.
const dreamTask = "Write down the moments of this conversation, and how they are linked."

// dreamOf opens a plan of the dreaming agent for each session that is due, once after each of its
// turns.
//
// A crash in here leaves a session due. Two gateways may do it at once: the request of a last
// turn opens one plan.
func (g *Gateway) dreamOf(ctx context.Context, due []bus.SilentPlan) {
	tried := make(map[string]bool)
	for _, p := range due {
		tried[p.PlanID] = true
		if g.dreamt[p.PlanID] || g.cfg.Now().Sub(p.OpenedAt) > standingLife {
			continue
		}
		if err := g.dream(ctx, p); err != nil && ctx.Err() == nil {
			g.cfg.Log.InfoContext(ctx, "no moments are written of a session", slog.String("plan_id", p.PlanID), slog.String("trace_id", p.TraceID), slog.String("error", err.Error()))
		}
	}
	g.dreamt = tried
}

// dream opens the plan under a standing grant: the roles of the session's last turn, cut to those
// that key and user have now. Nobody follows it.
func (g *Gateway) dream(ctx context.Context, last bus.SilentPlan) (err error) {
	a := actorOf(last)
	if a.roles, err = g.rolesOf(ctx, a, last.Roles); err != nil {
		return err
	}
	if err := g.covers(ctx, a, catalog.RunAgent+":"+agents.Dreaming); err != nil {
		return err
	}
	request := catalog.Request{Digest: intents.Digest([]byte("dream\n" + last.PlanID)), Kind: catalog.RequestKey}
	_, _, err = g.openTurn(ctx, a, agents.Dreaming, turnRequest{message: dreamTask, request: &request, absent: true})
	return err
}
