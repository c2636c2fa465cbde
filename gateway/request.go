package gateway

import (
	"cmp"

	"github.com/gin-gonic/gin"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/problem"
	"aob.dev/writ/state/agents"
)

// DefaultRouting are the default switches of request routing.
var DefaultRouting = catalog.Routing{Bypass: true, Clarify: true, TTLMinutes: 30}

// routingRequest is the body of POST /v1/request. The employee is the user.
type routingRequest struct {
	claim
	Input      string `json:"input"`
	Employee   string `json:"employee_id"`
	EntryPoint string `json:"entry_point"` // origin of the request; empty: ui
	Stream     bool   `json:"stream"`
}

// request is POST /v1/request: request routing chooses the agent.
func (g *Gateway) request(c *gin.Context, who caller) error {
	var body routingRequest
	if err := readBody(c, &body); err != nil {
		return err
	}
	if err := checkMessage(body.Input, "/input"); err != nil {
		return err
	}
	routing := g.cfg.Routing
	if routing.EntryPoint = cmp.Or(body.EntryPoint, "ui"); !identifier.MatchString(routing.EntryPoint) {
		return problem.New(intents.SchemaInvalid, "/entry_point", "must match "+identifier.String())
	}
	var err error
	if body.User, err = agreed("user_id", "employee_id", body.Employee, body.User); err != nil {
		return err
	}
	t, reply, err := g.begin(c, who, body.claim, namedAgent{agent: agents.Planner}, turnRequest{message: body.Input, routing: &routing})
	if err != nil {
		return err
	}
	if reply.Approval != nil {
		return g.reply(c, reply)
	}
	if body.Stream || wantsStream(c) {
		return g.streamTurn(c, t)
	}
	if err := g.await(c.Request.Context(), g.pace.wait, t, &reply, reply.take); err != nil {
		return err
	}
	v, err := g.viewPlan(c.Request.Context(), t.actor, t.plan)
	if err != nil {
		return err
	}
	if reply.AgentID = v.Agent; v.Route != nil {
		reply.Decision = v.Route.Decision
	}
	return g.reply(c, reply)
}
