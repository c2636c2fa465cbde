package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"

	wire "github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/problem"
)

// getResult reads what became of a call, or of a plan. It orders nothing anew.
func (s *mcpServer) getResult() server.ServerTool {
	t := readOnly(toolGetResult, "Reads what became of a call that was held, or was no longer waited for, by its intent_id; or of a plan, by its plan_id.",
		`{"type":"object","properties":{"intent_id":{"type":"string"},"plan_id":{"type":"string"}},"minProperties":1,"maxProperties":1,"additionalProperties":false}`)
	return s.tool(t, func(ctx context.Context, c *mcpCall) (*wire.CallToolResult, error) {
		var args struct {
			IntentID string `json:"intent_id"`
			PlanID   string `json:"plan_id"`
		}
		if err := c.arguments(&args); err != nil {
			return nil, err
		}
		g := s.of.g
		if args.PlanID == "" {
			a, err := g.readOrder(ctx, c.actor, args.IntentID)
			if err != nil {
				return nil, err
			}
			if a.Outcome == nil && a.Code == intents.ApprovalRequired {
				h := heldOf(a)
				return of(c.waits(h), a.IntentID, a.Receipt, ""), nil
			}
			return c.answer(ctx, a)
		}
		v, err := g.viewPlan(ctx, c.actor, args.PlanID)
		if err != nil {
			return nil, err
		}
		if closed(v) {
			t, reply, err := g.join(ctx, c.actor, v.PlanID)
			if err != nil {
				return nil, err
			}
			return c.follow(ctx, t, reply)
		}
		return ownResult(map[string]any{"status": mcpRunning, "plan_id": v.PlanID}), nil
	})
}

// readLines reads of a large result, as long as the plan of its call has its file.
func (s *mcpServer) readLines() server.ServerTool {
	t := readOnly(toolReadLines, `Reads lines of a large result ("status": "by_reference"): from is its intent_id, start counts from 0.`,
		`{"type":"object","properties":{"from":{"type":"string"},"start":{"type":"integer","minimum":0},"n":{"type":"integer","minimum":1,"maximum":1000}},"required":["from","start","n"],"additionalProperties":false}`)
	return s.tool(t, func(ctx context.Context, c *mcpCall) (*wire.CallToolResult, error) {
		var args struct {
			From  string `json:"from"`
			Start int    `json:"start"`
			N     int    `json:"n"`
		}
		if err := c.arguments(&args); err != nil {
			return nil, err
		}
		a, err := s.of.g.readOrder(ctx, c.actor, args.From)
		if err != nil {
			return nil, err
		}
		var called catalog.SkillCallResult
		if a.Outcome == nil || json.Unmarshal(a.Outcome.Result, &called) != nil || called.Reference == nil {
			return nil, problem.New(intents.MalformedArgs, "/from", "is no result that came by reference")
		}
		if a, err = s.of.skills.clientLines(ctx, c.actor, c.session, catalog.ReadLines{FileID: called.FileID, Start: args.Start, N: args.N}); err != nil {
			return nil, err
		}
		return c.answer(ctx, a)
	})
}

// readOrder reads an order as its user may.
func (g *Gateway) readOrder(ctx context.Context, a actor, id string) (*intents.Answer, error) {
	if !intents.IsDigest(id) {
		return nil, problem.New(intents.NotFound, "/intent_id", "no such order")
	}
	if g.orders == nil {
		return nil, problem.New(intents.DispatchUnavailable, "", "orders cannot be read here")
	}
	grant, err := g.issueReading(a)
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "/v1/intents/"+id, nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+grant)
	var got localAnswer
	g.orders.ServeHTTP(&got, r)
	if got.status >= http.StatusBadRequest {
		var p problem.Problem
		if json.Unmarshal(got.body.Bytes(), &p) != nil {
			p = *problem.New(intents.Internal, "", "")
		}
		return nil, &p
	}
	var out intents.Answer
	return &out, json.Unmarshal(got.body.Bytes(), &out)
}

// localAnswer is the answer to a request that the gateway makes of a handler in its process.
type localAnswer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header implements http.ResponseWriter.
func (a *localAnswer) Header() http.Header {
	if a.header == nil {
		a.header = http.Header{}
	}
	return a.header
}

// WriteHeader implements http.ResponseWriter.
func (a *localAnswer) WriteHeader(status int) { a.status = status }

func (a *localAnswer) Write(b []byte) (int, error) { return a.body.Write(b) }
