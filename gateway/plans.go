package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"strconv"

	"github.com/gin-gonic/gin"

	"aob.dev/writ/bus"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/problem"
)

// listPlans is GET /agent/plans: ?status=, ?limit=, ?after=.
func (g *Gateway) listPlans(c *gin.Context, who caller) error {
	return g.listOf(c, who, catalog.PlanList{})
}

func (g *Gateway) listOf(c *gin.Context, who caller, q catalog.PlanList) error {
	q.Status, q.After = c.Query("status"), c.Query("after")
	var err error
	if q.Limit, err = limitOf(c); err != nil {
		return err
	}
	a, err := g.identify(c.Request.Context(), who, claim{})
	if err != nil {
		return err
	}
	page, err := request[catalog.PlanListResult](c.Request.Context(), g, a, "plan.list", q, "")
	page.Plans = append([]catalog.PlanView{}, page.Plans...)
	return respond(c, page, err)
}

// limitOf returns the parameter ?limit= of a page; 0: absent.
func limitOf(c *gin.Context) (int, error) {
	raw := c.Query("limit")
	if raw == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(raw)
	if err != nil || n == 0 {
		return 0, problem.New(intents.SchemaInvalid, "/limit", "must be 1 to 100")
	}
	return n, nil
}

// getPlan is GET /agent/plans/{plan_id}.
func (g *Gateway) getPlan(c *gin.Context, a actor, planID string) error {
	view, err := g.viewPlan(c.Request.Context(), a, planID)
	return respond(c, view, err)
}

// traceReply is the answer to GET /agent/plans/{plan_id}/trace. With ?session=true it has the
// events of the whole session.
type traceReply struct {
	PlanID string            `json:"plan_id"`
	Events []json.RawMessage `json:"events"` // in order
}

func (g *Gateway) getTrace(c *gin.Context, a actor, planID string) error {
	got, err := request[catalog.PlanGetResult](c.Request.Context(), g, a, "plan.get", catalog.PlanGet{PlanID: planID, Trace: true, Session: c.Query("session") == "true"}, "")
	return respond(c, traceReply{planID, append([]json.RawMessage{}, got.Events...)}, err)
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

// viewPlan reads a plan for its owner; for anybody else it does not exist.
func (g *Gateway) viewPlan(ctx context.Context, a actor, planID string) (catalog.PlanView, error) {
	got, err := request[catalog.PlanGetResult](ctx, g, a, "plan.get", catalog.PlanGet{PlanID: planID}, "")
	return got.Plan, err
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
