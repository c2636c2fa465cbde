package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"
	"time"

	wire "github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/problem"
)

// pendingApproval is an intent that waits for people: of a call, or of a plan that a call has
// opened. As JSON it goes to the client and back. It allows nothing: the router decides who may
// approve.
type pendingApproval struct {
	IntentID string `json:"intent_id"`
	Plan     string `json:"plan_id,omitempty"`
	Type     string `json:"type"`
	Reason   string `json:"reason"`
	Deadline string `json:"deadline"`
	Text     string `json:"text,omitempty"` // text of an agent meanwhile
}

func pendingApprovalOf(a *intents.Answer) pendingApproval {
	w := approvalOf(a, "plan.open")
	return pendingApproval{IntentID: w.IntentID, Type: "skill.call", Reason: w.Reason, Deadline: w.Deadline}
}

// waits reports that an intent waits, and where people approve it.
func (c *mcpCall) waits(h pendingApproval) *wire.CallToolResult {
	out := map[string]any{"status": mcpPendingApproval, "intent_id": h.IntentID, "url": c.base + "/console/approvals/" + h.IntentID, "deadline": h.Deadline}
	for name, value := range map[string]string{"plan_id": h.Plan, "reason": h.Reason, "text": h.Text} {
		if value != "" {
			out[name] = value
		}
	}
	return c.own(cmp.Or(h.Text, "This waits until somebody approves it: "+c.base+"/console/approvals/"+h.IntentID), out)
}

// Of the question whether an intent is approved: its name, the wait for an answer if the protocol
// has the connection wait, and its maximum length, in bytes. No specification says that a client
// shows a longer one in full, so it is not asked there.
const (
	approvalQuestion = "approval"
	approvalTime     = 45 * time.Second
	maxQuestion      = 16 << 10
)

// hold answers a call that waits for approval. If the client can put a question to its user, and
// that user may decide, it is asked at once.
func (c *mcpCall) hold(ctx context.Context, h pendingApproval) (*wire.CallToolResult, error) {
	question, ok := c.question(ctx, h)
	switch {
	case !ok:
		return c.waits(h), nil
	case server.IsModernRequest(ctx): // the client calls again, with the answer
		state, err := json.Marshal(h)
		return server.NewInputRequestBuilder(string(state)).Elicit(approvalQuestion, question).ToolResult(), err
	}
	asking, cancel := context.WithTimeout(ctx, approvalTime)
	defer cancel()
	said, err := server.ServerFromContext(ctx).RequestElicitation(asking, wire.ElicitationRequest{Params: question})
	if err != nil {
		return c.waits(h), nil // nobody has answered
	}
	return c.decided(ctx, h, said)
}

// question returns the question to the user.
func (c *mcpCall) question(ctx context.Context, h pendingApproval) (q wire.ElicitationParams, ok bool) {
	client, ok := server.ClientSessionFromContext(ctx).(server.SessionWithClientInfo)
	if !ok || c.req.Params.Name == toolMessage { // no person is at an orchestrator
		return q, false
	}
	can := client.GetClientCapabilities().Elicitation
	if can == nil || can.Form == nil && can.URL != nil {
		return q, false
	}
	page, err := c.s.servers.g.approvals(ctx, c.actor, h.IntentID)
	if err != nil || len(page.Approvals) != 1 || !page.Approvals[0].MayDecide {
		return q, false
	}
	q.Message = "This waits for your approval.\n" + page.Approvals[0].Text()
	if len(q.Message) > maxQuestion {
		return q, false
	}
	q.RequestedSchema = json.RawMessage(`{"type":"object","properties":{"decision":{"type":"string","title":"Decision","enum":["approve","reject"]},"reason":{"type":"string","title":"Reason","maxLength":1000}},"required":["decision"]}`)
	return q, true
}

// resumed continues a call that waited for approval, once the user has answered.
func (c *mcpCall) resumed(ctx context.Context) (*wire.CallToolResult, error) {
	var h pendingApproval
	if err := json.Unmarshal([]byte(c.req.Params.RequestState), &h); err != nil || !intents.IsDigest(h.IntentID) {
		return nil, problem.New(intents.MalformedArgs, "/requestState", "is none that this server has sent")
	}
	said := server.ElicitationResponse(c.req.Params.InputResponses, approvalQuestion)
	if said == nil {
		return c.waits(h), nil
	}
	return c.decided(ctx, h, said)
}

// decided submits the user's decision, under a grant issued now, and waits for the outcome of the
// intent. Without a decision the intent keeps waiting.
func (c *mcpCall) decided(ctx context.Context, h pendingApproval, said *wire.ElicitationResult) (*wire.CallToolResult, error) {
	g := c.s.servers.g
	var a struct{ Decision, Reason string }
	raw, _ := json.Marshal(said.Content) // came as JSON
	if json.Unmarshal(raw, &a) != nil || said.Action != wire.ElicitationResponseActionAccept || a.Decision == "" {
		return c.waits(h), nil
	}
	if a.Reason == "" && a.Decision != catalog.DecisionApprove {
		a.Reason = "rejected in the MCP client"
	}
	deciding, cancel := lasting(ctx, intentTTL+catalog.DefaultRun)
	defer cancel()
	done, err := request[catalog.ApproveResult](deciding, g, c.actor, typeApprove, catalog.Approve{IntentID: h.IntentID, Decision: a.Decision, Reason: a.Reason}, "")
	switch {
	case err != nil:
		h.Reason = problem.FromError(err).Error()
		return c.waits(h), nil
	case done.State == catalog.ApprovalPending:
		h.Reason = "approvals are still needed from " + strings.Join(done.Missing, ", ")
		return c.waits(h), nil
	case h.Plan != "":
		t, reply, err := g.join(ctx, c.actor, h.Plan)
		if err != nil {
			return nil, err
		}
		return c.follow(ctx, t, reply)
	}
	answer, err := c.outcome(ctx, h.IntentID)
	if err != nil {
		return nil, err
	}
	return c.answer(ctx, answer)
}

// outcome waits for the outcome of an intent, as long as for a call.
func (c *mcpCall) outcome(ctx context.Context, id string) (*intents.Answer, error) {
	g := c.s.servers.g
	ctx, cancel := context.WithTimeout(ctx, g.pace.call)
	defer cancel()
	return g.outcome(ctx, c.actor, id)
}
