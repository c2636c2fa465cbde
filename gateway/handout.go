package gateway

import (
	"context"

	"aob.dev/writ/bus"
	"aob.dev/writ/intents"
	"aob.dev/writ/internal/problem"
)

// dispatch gives a turn to a manager, or a run to a workflow engine, and records it as this
// gateway's. Each dispatch has a driver of its own: if two drivers have one plan, plan.claim
// decides.
func (g *Gateway) dispatch(ctx context.Context, t turn, grant string) error {
	now := g.cfg.Now()
	t.driver = newID("driver")
	reply, err := ask[bus.PlanDispatchReply](ctx, g.cfg.Bus, bus.Agent(t.role()), bus.PlanDispatch{
		Tenant: t.tenant, UserID: t.user, SessionID: t.session, TurnID: t.id, PlanID: t.plan,
		Question: t.question, Driver: t.driver, Epoch: t.epoch, Grant: grant, TraceID: t.trace,
	})
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
