package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"sync"
	"time"

	wire "github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/problem"
)

// What writ itself answers instead of a tool.
const (
	mcpHeld        = "held"
	mcpByReference = "by_reference"
	mcpRunning     = "running"
	mcpFailed      = "error"
)

// ownResult is an answer of writ's own: its members beside it for programs, and as text.
func ownResult(members map[string]any) *wire.CallToolResult {
	raw, _ := json.Marshal(members) // plain data
	return &wire.CallToolResult{Content: []wire.Content{wire.NewTextContent(string(raw))}, StructuredContent: json.RawMessage(raw), IsError: members["status"] == mcpFailed}
}

// refusal is an error as a result: what is wrong, and what to do.
func refusal(err error) *wire.CallToolResult {
	p := problem.Of(err)
	return failed(p.IntentID, p.Code, cmp.Or(p.Detail, p.Title), p.Hint, map[string]any{"pointer": p.Pointer, "violations": p.Violations, "retry_after_sec": int(p.RetryAfter / time.Second)})
}

// failed is a call that was refused, or has failed; of more only what says anything counts.
func failed(id string, code intents.Code, reason, hint string, more map[string]any) *wire.CallToolResult {
	out := map[string]any{"status": mcpFailed, "code": code, "reason": reason}
	raw, _ := json.Marshal(more) // plain data
	var told map[string]json.RawMessage
	_ = json.Unmarshal(raw, &told)
	for name, value := range told {
		if s := string(value); s != `""` && s != "0" && s != "null" {
			out[name] = value
		}
	}
	if hint = cmp.Or(hint, code.Info().Hint); hint != "" {
		out["hint"] = hint
	}
	if id != "" {
		out["intent_id"] = id
	}
	return ownResult(out)
}

// of names the order that a result is of, and its plan.
func of(r *wire.CallToolResult, id, receipt, plan string) *wire.CallToolResult {
	fields := map[string]any{}
	for name, value := range map[string]string{"intent_id": id, "receipt": receipt, "plan_id": plan} {
		if value != "" {
			fields["aob.dev/"+name] = value
		}
	}
	r.Meta = &wire.Meta{AdditionalFields: fields}
	return r
}

// answer is what became of an order, as the result of a tool.
func (c *mcpCall) answer(ctx context.Context, a *intents.Answer) (*wire.CallToolResult, error) {
	switch o := a.Outcome; {
	case o != nil && o.Status == intents.Done:
		return of(c.output(a), a.IntentID, a.Receipt, ""), nil
	case o != nil:
		return of(failed(a.IntentID, o.Code, o.Reason, "", map[string]any{"details": o.Result}), a.IntentID, a.Receipt, ""), nil
	case a.Code == intents.ApprovalRequired:
		r, err := c.hold(ctx, heldOf(a))
		if err == nil && r.Meta == nil {
			r = of(r, a.IntentID, a.Receipt, "")
		}
		return r, err
	case a.Code == intents.OK || a.Code == intents.InFlight:
		return of(ownResult(map[string]any{"status": mcpRunning, "intent_id": a.IntentID}), a.IntentID, a.Receipt, ""), nil
	default:
		more := map[string]any{"pointer": a.Pointer, "violations": a.Violations, "retry_after_sec": a.RetryAfter}
		return of(failed(a.IntentID, a.Code, a.Reason, a.Hint, more), a.IntentID, a.Receipt, ""), nil
	}
}

// output is what a tool gave: objects as structured content, too, and texts as they are.
func (c *mcpCall) output(a *intents.Answer) *wire.CallToolResult {
	var called catalog.SkillCallResult
	_ = json.Unmarshal(a.Outcome.Result, &called)
	if called.Reference != nil {
		return ownResult(map[string]any{"status": mcpByReference, "from": a.IntentID, "size_bytes": called.SizeBytes, "sample": called.Sample})
	}
	out := called.Output
	if out == nil { // of another order
		out = a.Outcome.Result
	}
	var text string
	if json.Unmarshal(out, &text) != nil {
		text = string(out)
	}
	r := &wire.CallToolResult{Content: []wire.Content{wire.NewTextContent(text)}}
	if len(out) > 0 && out[0] == '{' {
		r.StructuredContent = out
	}
	return r
}

// teller sends progress of one call, to a client that has asked for it.
type teller struct {
	mu    sync.Mutex
	count int
	token wire.ProgressToken
}

// tell says how a call goes on.
func (c *mcpCall) tell(ctx context.Context, message string) {
	if c.token == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.count++
	// A client that is gone, or does not listen, misses it.
	_ = server.ServerFromContext(ctx).SendNotificationToClient(ctx, string(wire.MethodNotificationProgress), map[string]any{"progressToken": c.token, "progress": c.count, "message": message})
}

// progress says again and again that a call still runs, until it is stopped.
func (c *mcpCall) progress(ctx context.Context) (stop func()) {
	if c.req.Params.Meta != nil {
		c.token = c.req.Params.Meta.ProgressToken
	}
	if c.token == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var telling sync.WaitGroup
	telling.Go(func() {
		again := time.NewTicker(c.s.of.g.pace.working)
		defer again.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-again.C:
				c.tell(ctx, "still running")
			}
		}
	})
	return func() {
		cancel()
		telling.Wait()
	}
}
