package gateway

import (
	"cmp"
	"context"
	"log/slog"

	"github.com/gin-gonic/gin"

	"aob.dev/writ/bus"
	"aob.dev/writ/gateway/readapi"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/clock"
	"aob.dev/writ/internal/problem"
)

// getPlan is GET /agent/plans/{plan_id}.
func (g *Gateway) getPlan(c *gin.Context, a actor, planID string) error {
	view, err := g.viewPlan(c.Request.Context(), a, planID)
	return respond(c, view, err)
}

// getTrace is GET /agent/plans/{plan_id}/trace. With ?session=true it has the events of the whole
// session.
func (g *Gateway) getTrace(c *gin.Context, a actor, planID string) error {
	under := planID
	if c.Query("session") == "true" {
		under = "" // a grant of one plan shows no other one of the session
	}
	got, err := readUnder[catalog.PlanTrace](c.Request.Context(), g, a, under, readapi.Plans+"/"+planID+"/trace", chosen(c, "session"))
	return respond(c, got, err)
}

// cancelPlan is DELETE /agent/plans/{plan_id}.
func (g *Gateway) cancelPlan(c *gin.Context, a actor, planID string) error {
	ctx, cancel := lasting(c.Request.Context(), openTimeout)
	defer cancel()
	reason, err := g.stop(ctx, a, planID)
	return respond(c, gin.H{"plan_id": planID, "status": catalog.PlanFailed, "reason": reason}, err)
}

// stop cancels a plan for a user. Clients that follow the turn receive its end, whether a process
// runs it or not.
func (g *Gateway) stop(ctx context.Context, a actor, planID string) (reason string, err error) {
	reason = "stopped by " + a.user
	view, err := request[catalog.PlanView](ctx, g, a, "cancel", catalog.Cancel{PlanID: planID}, planID)
	if err != nil {
		return "", err
	}
	g.turns.forget(planID)
	t := turn{actor: a, id: view.TurnID, plan: planID, run: view.Run != nil}
	if err := g.tellCancelled(t, reason); err != nil {
		g.cfg.Log.WarnContext(ctx, "tell that a plan is cancelled", slog.String("plan_id", planID), slog.String("trace_id", a.trace), slog.String("error", err.Error()))
	}
	return reason, nil
}

// hungUp stops the plan of a chat front end that has closed the connection: there, that is how a
// person stops an answer. The plans of other clients go on.
func (g *Gateway) hungUp(ctx context.Context, t turn) {
	if !t.frontEnd || ctx.Err() == nil || clock.Stopping(ctx) {
		return
	}
	lasts, cancel := lasting(ctx, openTimeout)
	defer cancel()
	if _, err := g.stop(lasts, t.actor, t.plan); err != nil { // it may have ended
		g.cfg.Log.InfoContext(lasts, "stop a plan", slog.String("plan_id", t.plan), slog.String("trace_id", t.trace), slog.String("error", err.Error()))
	}
}

func (g *Gateway) tellCancelled(t turn, reason string) error {
	for _, e := range []event{
		newEvent(bus.FrameError, bus.ErrorData{Code: string(intents.Cancelled), Reason: reason}),
		newEvent(bus.FrameDone, bus.DoneData{PlanID: t.plan, Status: string(catalog.PlanFailed)}),
	} {
		raw, err := bus.NewFrame(e.Kind, e.Data)
		if err != nil {
			return err
		}
		if err := g.cfg.Bus.Publish(bus.Turn(t.tenant, t.id), raw); err != nil {
			return err
		}
	}
	return nil
}

// viewPlan reads a plan for its owner, or for somebody who oversees the tenant; for anybody else it
// does not exist.
func (g *Gateway) viewPlan(ctx context.Context, a actor, planID string) (catalog.PlanView, error) {
	return readUnder[catalog.PlanView](ctx, g, a, planID, readapi.Plans+"/"+planID, nil)
}

// identifyForPlan determines the user who asks about the plan of the route. The session of a read
// is unrelated to the plan's.
func (g *Gateway) identifyForPlan(c *gin.Context, who caller) (actor, string, error) {
	planID := cmp.Or(c.Param("plan_id"), c.Param("run_id"))
	if !identifier.MatchString(planID) {
		return actor{}, "", problem.New(intents.NotFound, "", "no such plan")
	}
	a, err := g.identify(c.Request.Context(), who, claim{})
	return a, planID, err
}
