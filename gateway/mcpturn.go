package gateway

import (
	"context"
	"encoding/json"

	wire "github.com/mark3labs/mcp-go/mcp"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/bus"
)

// run opens a turn of an agent, or of the planner, as POST /agent/run does, and waits for it.
// The same request sent again joins the turn that it has opened. A client that goes away, or
// cancels, leaves the plan going on.
func (c *mcpCall) run(ctx context.Context, agent, task string) (*wire.CallToolResult, error) {
	g := c.s.of.g
	if err := checkMessage(task, "/task"); err != nil {
		return nil, err
	}
	if err := g.limit.meter(c.actor); err != nil {
		return nil, err
	}
	opening, cancel := context.WithTimeout(context.WithoutCancel(ctx), openTimeout)
	defer cancel()
	request := &catalog.Request{Digest: intents.Digest([]byte("mcp\n" + c.session + "\n" + c.id + "\n" + agent + "\n" + task)), Kind: catalog.RequestKey}
	t, reply, err := g.openTurn(opening, c.actor, agent, turnRequest{message: task, request: request})
	if err != nil {
		return nil, err
	}
	return c.follow(ctx, t, reply)
}

// follow waits for the end of a turn, or until it waits for people.
func (c *mcpCall) follow(ctx context.Context, t turn, reply runReply) (*wire.CallToolResult, error) {
	g := c.s.of.g
	if reply.Approval == nil {
		err := g.await(ctx, g.pace.wait, t, &reply, func(e event) bool {
			var d bus.StatusData
			if e.Kind == bus.FrameStatus && json.Unmarshal(e.Data, &d) == nil {
				c.tell(ctx, d.State)
			}
			return reply.take(e)
		})
		if err != nil {
			return nil, err
		}
	}
	var r *wire.CallToolResult
	switch reply.Status {
	case statusHeld:
		h := held{IntentID: reply.Approval.IntentID, Plan: t.plan, Type: reply.Approval.Type, Reason: reply.Approval.Reason, Deadline: reply.Approval.Deadline, Text: reply.Response}
		r, err := c.hold(ctx, h)
		if err != nil || r.Meta != nil {
			return r, err
		}
		return of(r, h.IntentID, reply.Receipt, t.plan), nil
	case statusExecuting:
		r = ownResult(map[string]any{"status": mcpRunning, "plan_id": t.plan})
	case string(catalog.PlanFailed):
		r = failed("", intents.ExecutorFailed, reply.Reason, "", map[string]any{"plan_id": t.plan, "details": reply.Failure})
	default:
		r = &wire.CallToolResult{Content: []wire.Content{wire.NewTextContent(reply.Response)}}
		r.StructuredContent = map[string]any{"status": reply.Status, "response": reply.Response, "data": reply.Data, "components": reply.Components}
	}
	return of(r, reply.IntentID, reply.Receipt, t.plan), nil
}
