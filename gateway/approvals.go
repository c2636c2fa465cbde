package gateway

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"

	"github.com/gin-gonic/gin"

	"aob.dev/writ/bus"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/problem"
)

// getApproval is GET /agent/approvals/{intent_id}.
func (g *Gateway) getApproval(c *gin.Context, a actor) error {
	page, err := g.approvals(c.Request.Context(), a, c.Param("intent_id"))
	if err != nil {
		return err
	}
	if len(page.Approvals) != 1 || c.Param("intent_id") == "" {
		return problem.New(intents.NotFound, "", "no intent that waits for you or that you asked for")
	}
	c.JSON(http.StatusOK, page.Approvals[0])
	return nil
}

func (g *Gateway) approvals(ctx context.Context, a actor, intentID string) (bus.ApprovalsReply, error) {
	return read[bus.ApprovalsReply](ctx, g, a, approvalsAt, url.Values{"intent_id": {intentID}})
}

// approvalsAt is where a router answers which approvals are pending.
const approvalsAt = "/v1/approvals"

// decision is the body of POST /agent/approvals/{intent_id}.
type decision struct {
	claim
	Decision string          `json:"decision"` // approve, reject, request_changes, edit
	Items    []string        `json:"items"`
	Args     json.RawMessage `json:"args"`
	Reason   string          `json:"reason"`
	Also     *catalog.Also   `json:"also"`
}

// nodeDecision is the body of POST /agent/approvals.
type nodeDecision struct {
	decision
	IntentID string `json:"intent_id"` // shown to the person
	RunID    string `json:"run_id"`
	NodeID   string `json:"node_id"`
}

// decideApproval is POST /agent/approvals/{intent_id}: it signs the decision of the key's owner,
// under a grant issued just now for that person. The router decides whether the person may.
func (g *Gateway) decideApproval(c *gin.Context, who caller) error {
	id := c.Param("intent_id")
	if !intents.IsDigest(id) {
		return problem.New(intents.NotFound, "", "no such intent")
	}
	var body decision
	if err := readBody(c, &body); err != nil {
		return err
	}
	return g.decide(c, who, body, catalog.Approve{IntentID: id})
}

// decideNode is POST /agent/approvals: it decides a pending approval at a node of a run: the one
// that was shown to the person there and no other.
func (g *Gateway) decideNode(c *gin.Context, who caller) error {
	var body nodeDecision
	if err := readBody(c, &body); err != nil {
		return err
	}
	if !intents.IsDigest(body.IntentID) {
		p := problem.New(intents.SchemaInvalid, "/intent_id", "say which intent you have seen there, by its intent_id")
		p.Hint = "GET /agent/approvals lists what waits, with intent_id, run and node"
		return p
	}
	return g.decide(c, who, body.decision, catalog.Approve{IntentID: body.IntentID, RunID: body.RunID, NodeID: body.NodeID})
}

func (g *Gateway) decide(c *gin.Context, who caller, body decision, args catalog.Approve) error {
	a, err := g.identify(c.Request.Context(), who, body.claim)
	if err != nil {
		return err
	}
	ctx, cancel := lasting(c.Request.Context(), intentTTL+catalog.DefaultRun)
	defer cancel()
	args.Decision, args.Items, args.Args, args.Reason = body.Decision, body.Items, body.Args, body.Reason
	args.Also = body.Also
	result, err := request[catalog.ApproveResult](ctx, g, a, typeApprove, args, "")
	return respond(c, result, err)
}

// typeApprove is the type of the intent with which people decide pending approvals.
const typeApprove = "hitl.approve"
