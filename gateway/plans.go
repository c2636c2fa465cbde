package gateway

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"

	"github.com/gin-gonic/gin"

	"aob.dev/writ/bus"
	"aob.dev/writ/gateway/readapi"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
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

// cancelPlan is DELETE /agent/plans/{plan_id}. Clients that follow the turn receive its end.
func (g *Gateway) cancelPlan(c *gin.Context, a actor, planID string) error {
	ctx, cancel := lasting(c.Request.Context(), openTimeout)
	defer cancel()
	const reason = "cancelled by the user"
	if _, err := request[catalog.PlanView](ctx, g, a, "cancel", catalog.Cancel{PlanID: planID, Reason: reason}, planID); err != nil {
		return err
	}
	if t, ok := g.turns.find(planID); ok {
		g.turns.forget(planID)
		if err := g.tellCancelled(t, reason); err != nil {
			g.cfg.Log.WarnContext(c.Request.Context(), "tell that a plan is cancelled", slog.String("plan_id", planID), slog.String("trace_id", a.trace), slog.String("error", err.Error()))
		}
	}
	c.JSON(http.StatusOK, gin.H{"plan_id": planID, "status": catalog.PlanFailed, "reason": reason})
	return nil
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
