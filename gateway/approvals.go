package gateway

import (
	"context"
	"net/http"
	"strconv"

	"github.com/gin-gonic/gin"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/bus"
	"aob.dev/writ/internal/problem"
)

// listApprovals is GET /agent/approvals: ?mine=true, ?type=, ?limit=, ?after=.
func (g *Gateway) listApprovals(c *gin.Context, who caller) error {
	q := bus.ApprovalsRequest{Mine: c.Query("mine") == "true", Type: c.Query("type"), After: c.Query("after")}
	if raw := c.Query("limit"); raw != "" {
		var err error
		if q.Limit, err = strconv.Atoi(raw); err != nil || q.Limit == 0 {
			return problem.New(intents.SchemaInvalid, "/limit", "must be 1 to 100")
		}
	}
	a, err := g.identify(c.Request.Context(), who, claim{})
	if err != nil {
		return err
	}
	page, err := g.approvals(c.Request.Context(), a, q)
	if err != nil {
		return err
	}
	c.JSON(http.StatusOK, page)
	return nil
}

// getApproval is GET /agent/approvals/{intent_id}.
func (g *Gateway) getApproval(c *gin.Context, who caller) error {
	a, err := g.identify(c.Request.Context(), who, claim{})
	if err != nil {
		return err
	}
	page, err := g.approvals(c.Request.Context(), a, bus.ApprovalsRequest{IntentID: c.Param("intent_id")})
	if err != nil {
		return err
	}
	if len(page.Approvals) != 1 || c.Param("intent_id") == "" {
		return problem.New(intents.NotFound, "", "no order that waits for you or that you asked for")
	}
	c.JSON(http.StatusOK, page.Approvals[0])
	return nil
}

func (g *Gateway) approvals(ctx context.Context, a actor, q bus.ApprovalsRequest) (bus.ApprovalsReply, error) {
	var err error
	if q.Grant, _, err = g.issueGrant(a, newID("turn"), ""); err != nil {
		return bus.ApprovalsReply{}, err
	}
	page, err := ask[bus.ApprovalsReply](ctx, g.cfg.Bus, bus.DirectoryApprovals, q)
	if err == nil && page.Code != "" {
		err = problem.New(intents.Code(page.Code), "", page.Reason)
	}
	return page, err
}

// decision is the body of POST /agent/approvals/{intent_id}.
type decision struct {
	claim
	Decision string `json:"decision"` // approve, reject, request_changes
	Reason   string `json:"reason"`
}

// decideApproval is POST /agent/approvals/{intent_id}: it seals the decision of the
// person whose key it is, under a grant that was issued for it just now. The router
// decides whether the person may.
func (g *Gateway) decideApproval(c *gin.Context, who caller) error {
	id := c.Param("intent_id")
	if !intents.IsDigest(id) {
		return problem.New(intents.NotFound, "", "no such order")
	}
	var body decision
	if err := readBody(c, &body); err != nil {
		return err
	}
	a, err := g.identify(c.Request.Context(), who, body.claim)
	if err != nil {
		return err
	}
	ctx, cancel := lasting(c, orderTTL+catalog.DefaultRun)
	defer cancel()
	args := catalog.Approve{IntentID: id, Decision: body.Decision, Reason: body.Reason}
	result, err := request[catalog.ApproveResult](ctx, g, a, typeApprove, args, "")
	if err != nil {
		return err
	}
	c.JSON(http.StatusOK, result)
	return nil
}

// typeApprove is the order that people decide held orders with.
const typeApprove = "hitl.approve"
