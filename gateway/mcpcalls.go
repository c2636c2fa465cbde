package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	wire "github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"aob.dev/writ/bus"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/clock"
	"aob.dev/writ/internal/problem"
	"aob.dev/writ/internal/problem/edge"
	"aob.dev/writ/state/agents"
)

// mcpCall is one call of a tool.
type mcpCall struct {
	*mcpRequest
	progressReporter
	s       *mcpServer
	req     wire.CallToolRequest
	session string
	server  string // of the skill; empty: none is called
}

// tool creates a tool from its function. An error becomes a result that says what to do, since
// models see only results.
func (s *mcpServer) tool(t wire.Tool, do func(context.Context, *mcpCall) (*wire.CallToolResult, error)) server.ServerTool {
	return server.ServerTool{Tool: t, Handler: func(ctx context.Context, req wire.CallToolRequest) (*wire.CallToolResult, error) {
		r, _ := ctx.Value(mcpRequestKey{}).(*mcpRequest)
		c := &mcpCall{mcpRequest: r, s: s, req: req, session: s.defaultSession}
		if err := s.servers.meter(c.actor); err != nil {
			return refusal(err), nil
		}
		if session := server.ClientSessionFromContext(ctx); session != nil && session.SessionID() != "" {
			c.session = session.SessionID()
		}
		switch {
		case c.id != "":
		case c.rpc == "":
			c.id = `"` + newID("call") + `"`
		default:
			c.id, c.done = s.repeats.begin(c.session, c.rpc, req.Params)
		}
		ctx, end := r.untilStop(ctx)
		defer end()
		stop := c.progress(ctx)
		defer stop()
		var result *wire.CallToolResult
		var err error
		if req.Params.RequestState != "" {
			result, err = c.resumed(ctx)
		} else {
			result, err = do(ctx, c)
		}
		if err != nil {
			switch {
			case errors.As(err, new(wire.URLElicitationRequiredError)):
				return nil, err
			case clock.Stopping(ctx):
				err = edge.Stopped(ctx, err)
			case ctx.Err() != nil:
				err = problem.New(intents.InFlight, "", "the client no longer waits; what was recorded goes on")
			}
			return refusal(err), nil
		}
		return result, nil
	}}
}

// arguments decodes the arguments of a tool that is no skill.
func (c *mcpCall) arguments(into any) error {
	raw := c.req.Params.RawArguments
	if err := intents.UnmarshalStrict(raw, into); err != nil {
		return problem.New(intents.MalformedArgs, "", "the arguments do not match the tool's input schema")
	}
	return nil
}

// run opens a turn of an agent, or of the planner, as POST /agent/run does, and waits for it. The
// same request sent again joins the turn that it has opened. A client that disconnects, or
// cancels, leaves the plan running.
func (c *mcpCall) run(ctx context.Context, agent string, q turnRequest) (*wire.CallToolResult, error) {
	if agent == agents.Planner {
		agent = ""
	}
	opening, cancel := lasting(ctx, openTimeout)
	defer cancel()
	t, reply, err := c.s.servers.g.openTurn(opening, c.actor, agent, q)
	if err != nil {
		return nil, err
	}
	return c.follow(ctx, t, reply)
}

// follow waits for the end of a turn, or until it waits for people.
func (c *mcpCall) follow(ctx context.Context, t turn, reply runReply) (*wire.CallToolResult, error) {
	g := c.s.servers.g
	if reply.Approval == nil {
		wait := g.pace.wait
		if c.token != nil {
			wait = standingLife
		}
		err := g.await(ctx, wait, t, &reply, func(e event) bool {
			var d bus.StatusData
			if e.Kind == bus.FrameStatus && json.Unmarshal(e.Data, &d) == nil {
				said := d.State
				if d.IntentID != "" { // of a call
					said = d.Message
				}
				c.report(ctx, said, 0, 0)
			}
			return reply.take(e)
		})
		if err != nil {
			return nil, err
		}
	}
	var r *wire.CallToolResult
	switch reply.Status {
	case statusPendingApproval:
		h := pendingApproval{IntentID: reply.Approval.IntentID, Plan: t.plan, Type: reply.Approval.Type, Reason: reply.Approval.Reason, Deadline: reply.Approval.Deadline, Text: reply.Response}
		r, err := c.hold(ctx, h)
		if err != nil || r.Meta != nil {
			return r, err
		}
		return withMeta(r, h.IntentID, reply.Receipt, t.plan), nil
	case statusExecuting:
		r = c.own(reply.words(), map[string]any{"status": mcpRunning, "plan_id": t.plan})
	case string(catalog.PlanFailed):
		r = failed("", intents.ExecutorFailed, reply.Reason, "ask for what the reason leaves possible; GET /agent/plans/"+t.plan+"/trace shows what was tried", map[string]any{"plan_id": t.plan, "details": reply.Failure})
	default:
		if c.req.Params.Name == toolMessage {
			return withMeta(c.said(reply), reply.IntentID, reply.Receipt, t.plan), nil
		}
		r = &wire.CallToolResult{Content: []wire.Content{wire.NewTextContent(reply.Response)}}
		r.StructuredContent = map[string]any{"status": reply.Status, "response": reply.Response, "data": reply.Data, "components": reply.Components}
	}
	return withMeta(r, reply.IntentID, reply.Receipt, t.plan), nil
}

// Answers of writ itself instead of a tool.
const (
	mcpPendingApproval = "held"
	mcpByReference     = "by_reference"
	mcpRunning         = "running"
	mcpFailed          = "error"
)

// ownResult is an answer of writ itself: its members as structured content for programs, and as
// text.
func ownResult(members map[string]any) *wire.CallToolResult {
	raw, _ := json.Marshal(members) // plain data
	return &wire.CallToolResult{Content: []wire.Content{wire.NewTextContent(string(raw))}, StructuredContent: json.RawMessage(raw), IsError: members["status"] == mcpFailed}
}

// refusal turns an error into a result: the error, and what to do.
func refusal(err error) *wire.CallToolResult {
	p := problem.FromError(err)
	return failed(p.IntentID, p.Code, cmp.Or(p.Detail, p.Title), p.Hint, map[string]any{"pointer": p.Pointer, "violations": p.Violations, "retry_after_sec": int(p.RetryAfter / time.Second), "plan_id": p.PlanID})
}

// failed is a call that was refused, or has failed; zero members of more are omitted.
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

// withMeta names the intent of a result, and its plan.
func withMeta(r *wire.CallToolResult, id, receipt, plan string) *wire.CallToolResult {
	fields := map[string]any{}
	for name, value := range map[string]string{"intent_id": id, "receipt": receipt, "plan_id": plan} {
		if value != "" {
			fields["aob.dev/"+name] = value
		}
	}
	r.Meta = &wire.Meta{AdditionalFields: fields}
	return r
}

// answer returns the outcome of an intent, as the result of a tool.
func (c *mcpCall) answer(ctx context.Context, a *intents.Answer) (*wire.CallToolResult, error) {
	switch o := a.Outcome; {
	case o != nil && o.Status == intents.Done:
		r, err := c.output(ctx, a)
		if err != nil {
			return nil, err
		}
		return withMeta(r, a.IntentID, a.Receipt, ""), nil
	case o != nil:
		if err := c.connectFirst(ctx, o); err != nil {
			return nil, err
		}
		return withMeta(failed(a.IntentID, o.Code, o.Reason, "", map[string]any{"details": o.Result}), a.IntentID, a.Receipt, ""), nil
	case a.Code == intents.ApprovalRequired:
		r, err := c.hold(ctx, pendingApprovalOf(a))
		if err == nil && r.Meta == nil {
			r = withMeta(r, a.IntentID, a.Receipt, "")
		}
		return r, err
	case a.Code == intents.OK || a.Code == intents.InFlight:
		return withMeta(ownResult(map[string]any{"status": mcpRunning, "intent_id": a.IntentID}), a.IntentID, a.Receipt, ""), nil
	default:
		more := map[string]any{"pointer": a.Pointer, "violations": a.Violations, "retry_after_sec": a.RetryAfter}
		return withMeta(failed(a.IntentID, a.Code, a.Reason, a.Hint, more), a.IntentID, a.Receipt, ""), nil
	}
}

// connectFirst is the error that has the client open the link of a call for a user who is not connected; nil: the
// call has not failed for that, or the client opens no links.
func (c *mcpCall) connectFirst(ctx context.Context, o *intents.Outcome) error {
	var details map[string]any
	_ = json.Unmarshal(o.Result, &details)
	link, _ := details[catalog.ConnectDetail].(string)
	client, ok := server.ClientSessionFromContext(ctx).(server.SessionWithClientInfo)
	if link == "" || !ok || server.IsModernRequest(ctx) {
		return nil
	}
	if can := client.GetClientCapabilities().Elicitation; can == nil || can.URL == nil {
		return nil
	}
	return wire.URLElicitationRequiredError{Elicitations: []wire.ElicitationParams{
		{Mode: wire.ElicitationModeURL, Message: "Connect to the skill server, then call again.", ElicitationID: newID("connect"), URL: link},
	}}
}

// progressReporter sends progress of one call, to a client that requested it.
type progressReporter struct {
	mu    sync.Mutex
	last  float64
	total float64 // 0: unknown
	token wire.ProgressToken
}

// smallProgress is that of a report without a number: all of a day are less than a step of any
// server.
const smallProgress = 1e-6

// report sends the progress of a call, which grows with each report. 0: it is not known.
func (c *mcpCall) report(ctx context.Context, message string, progress, total float64) {
	if c.token == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if progress > c.last {
		c.last, c.total = progress, total
	} else {
		c.last += smallProgress
	}
	params := map[string]any{"progressToken": c.token, "progress": c.last}
	if message != "" {
		params["message"] = message
	}
	if c.total > 0 {
		params["total"] = c.total
	}
	// A client that has disconnected, or does not listen, misses it.
	_ = server.ServerFromContext(ctx).SendNotificationToClient(ctx, string(wire.MethodNotificationProgress), params)
}

// progress reports repeatedly that a call still runs, until it is stopped.
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
		again := time.NewTicker(c.s.servers.g.pace.working)
		defer again.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-again.C:
				c.report(ctx, "still running", 0, 0)
			}
		}
	})
	return func() {
		cancel()
		telling.Wait()
	}
}

// repeats determines which calls of a caller's sessions are the same one. Clients use ids of
// JSON-RPC as they like, some one id for every request, so an id marks a repeated call only until
// the answer was given: while the first is running, and after a client disconnected without it.
type repeats struct {
	mu    sync.Mutex // guards open
	open  map[string]*repeat
	bound int // on calls for which nobody waits
	ended int // requests
}

// repeat is a call that may be sent again.
type repeat struct {
	name    string
	waiting int // requests that wait for it now
	left    int // how many requests had ended when its last one did
}

// maxRepeats bounds the recorded calls of each caller.
const maxRepeats = 1000

func newRepeats() *repeats { return &repeats{open: make(map[string]*repeat), bound: maxRepeats} }

// begin names the call of a request. ended reports the end of the request, and whether its client
// was answered.
func (r *repeats) begin(session, id string, call wire.CallToolParams) (name string, ended func(answered bool)) {
	of := intents.Digest([]byte(session + "\n" + id + "\n" + call.Name + "\n" + string(call.RawArguments)))
	r.mu.Lock()
	defer r.mu.Unlock()
	at := r.open[of]
	if at == nil {
		at = &repeat{name: `"` + newID("call") + `"`}
		r.open[of] = at
	}
	at.waiting++
	return at.name, func(answered bool) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.ended++
		at.waiting, at.left = at.waiting-1, r.ended
		if answered && r.open[of] == at {
			delete(r.open, of)
		}
		r.makeRoom()
	}
}

// makeRoom drops the oldest call for which nobody waits, if there are too many.
func (r *repeats) makeRoom() {
	if len(r.open) <= r.bound {
		return
	}
	oldest := ""
	for of, at := range r.open {
		if at.waiting == 0 && (oldest == "" || at.left < r.open[oldest].left) {
			oldest = of
		}
	}
	delete(r.open, oldest)
}
