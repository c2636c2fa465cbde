package gateway

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/gin-gonic/gin"

	"aob.dev/writ/bus"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/problem"
	"aob.dev/writ/state/agents"
)

// produceRequest is the body of POST /v1/produce.
type produceRequest struct {
	claim
	Request string `json:"request"` // one sentence
}

// produceReply is its answer: the signed intent, which the client submits, or why there is none.
type produceReply struct {
	Envelope json.RawMessage `json:"envelope,omitempty"`
	IntentID string          `json:"intent_id,omitempty"`
	Type     string          `json:"type,omitempty"`
	Reason   string          `json:"reason,omitempty"`
}

// produce is POST /v1/produce, the first of two calls: the agentic layer signs one intent under
// the caller's grant. The intent is neither submitted nor recorded: POST /v1/intents is the
// second call.
func (g *Gateway) produce(c *gin.Context, who caller) error {
	var body produceRequest
	if err := readBody(c, &body); err != nil {
		return err
	}
	if err := checkMessage(body.Request, "/request"); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(c.Request.Context(), g.pace.wait)
	defer cancel()
	a, err := g.identify(ctx, who, body.claim)
	if err != nil {
		return err
	}
	if err := g.affords(ctx, a, catalog.RunAgent+":"+agents.Producer); err != nil {
		return err
	}
	turn := newID("turn")
	grant, _, err := g.issueGrant(a, turn, "")
	if err != nil {
		return err
	}
	made, err := askBy[bus.ProduceReply](ctx, g.cfg.Bus.Request, bus.Produce("manager"), bus.ProduceRequest{TurnRef: a.turnRef(turn, "", grant), Request: body.Request})
	if err != nil {
		return unanswered(err, "the manager")
	}
	if made.Code != "" {
		return problem.New(intents.Code(made.Code), "", made.Reason)
	}
	c.JSON(http.StatusOK, produceReply{made.Envelope, made.IntentID, made.Type, made.Reason})
	return nil
}

// affords refuses a user who lacks a capability, or whose daily budget is exhausted, and everybody of a
// tenant that was stopped: no plan exists for this work, so no step is refused for it.
func (g *Gateway) affords(ctx context.Context, a actor, capability string) error {
	reply, err := g.covered(ctx, a, capability)
	if by := stoppedIn(reply).All; err == nil && by != nil {
		p := problem.New(intents.PolicyDenied, "", catalog.StopOf{Stop: *by, What: "everything"}.String())
		p.Hint = "try again when an operator lets it go on: writ resume"
		return p
	}
	if err == nil && reply.SpentBudget != "" {
		p := problem.New(intents.RateLimited, "", reply.SpentBudget)
		p.Hint = "an operator can change it: writ tenant data budgets"
		return p
	}
	return err
}

// stoppedIn is what operators have stopped in the tenant of a user.
func stoppedIn(reply bus.UserReply) (s catalog.Stopped) {
	if len(reply.Stopped) > 0 {
		_ = json.Unmarshal(reply.Stopped, &s) // the router's own
	}
	return s
}
