package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/gin-gonic/gin"

	"aob.dev/writ/bus"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/clock"
	"aob.dev/writ/internal/problem"
	"aob.dev/writ/state/agents"
)

// runRequest is the body of POST /agent/run.
type runRequest struct {
	claim
	Message string `json:"message"`
	Agent   string `json:"agent"` // owner of the plan; empty: run_agent, or the planner
	Stream  bool   `json:"stream"`
}

// runReply answers without a stream: 200 once the plan is closed, 202 while it waits for people
// (status held) or takes longer than a request may (status executing). A failed plan is an answer
// too: the task could not be done, but the service worked.
type runReply struct {
	PlanID    string          `json:"plan_id"`
	SessionID string          `json:"session_id"`
	TurnID    string          `json:"turn_id"`
	TraceID   string          `json:"trace_id"`
	Status    string          `json:"status"` // complete, failed, needs_input, held, executing
	Response  string          `json:"response,omitempty"`
	Data      json.RawMessage `json:"data,omitempty"`
	// Components are rendered by agents beside the response: [{name, props}].
	Components json.RawMessage `json:"components,omitempty"`
	Reason     string          `json:"reason,omitempty"` // of a failure
	Failure    json.RawMessage `json:"failure,omitempty"`
	Approval   *bus.Approval   `json:"approval,omitempty"`
	IntentID   string          `json:"intent_id,omitempty"` // of plan.open, by this request
	Receipt    string          `json:"receipt,omitempty"`

	// Of a routed request: the answering agent (empty: the user is asked for clarification), and
	// why.
	AgentID  string `json:"agent_id,omitempty"`
	Decision string `json:"decision,omitempty"`

	Ignored []string `json:"ignored,omitempty"` // members of the request that the answer does without

	WorkflowComplete bool `json:"workflow_complete,omitempty"` // a remote agent has completed the purpose of the session, and the session is closed
}

// Statuses of a reply besides those of closed plans.
const (
	statusPendingApproval = "held"
	statusExecuting       = "executing"
)

// maxMessage is the longest task that plan.open accepts.
const maxMessage = 16 << 10

func checkMessage(text, pointer string) error { return checkSize(text, pointer, maxMessage) }

func checkSize(text, pointer string, most int) error {
	if text == "" || len(text) > most {
		return problem.New(intents.SchemaInvalid, pointer, fmt.Sprintf("must have 1 to %d bytes", most))
	}
	return nil
}

// openTimeout bounds opening a plan and dispatching it.
const openTimeout = 2 * time.Minute

// run is POST /agent/run.
func (g *Gateway) run(c *gin.Context, who caller) error {
	var body runRequest
	if err := readBody(c, &body); err != nil {
		return err
	}
	if err := checkMessage(body.Message, "/message"); err != nil {
		return err
	}
	t, reply, err := g.begin(c, who, body.claim, namedAgent{body.Agent, "/agent"}, turnRequest{message: body.Message})
	if err != nil {
		return err
	}
	return g.answer(c, t, &reply, body.Stream)
}

// answer answers the request for a turn: with its stream, if the client wants one, or once it has
// ended or waits.
func (g *Gateway) answer(c *gin.Context, t turn, reply *runReply, stream bool) error {
	defer g.hungUp(c.Request.Context(), t)
	switch {
	case reply.Approval != nil:
	case stream || wantsStream(c):
		return g.streamTurn(c, t)
	default:
		if err := g.await(c.Request.Context(), g.pace.wait, t, reply, reply.take); err != nil {
			return err
		}
		if t.routed {
			v, err := g.viewPlan(c.Request.Context(), t.actor, t.plan)
			if err != nil {
				return err
			}
			if reply.AgentID = v.Agent; v.Route != nil {
				reply.Decision = v.Route.Decision
			}
		}
	}
	return g.reply(c, *reply)
}

// begin opens a turn for a user. From then on the work belongs to the plan, not to the
// connection.
func (g *Gateway) begin(c *gin.Context, who caller, body claim, agent namedAgent, q turnRequest) (turn, runReply, error) {
	a, err := g.identify(c.Request.Context(), who, body)
	if err != nil {
		return turn{}, runReply{}, err
	}
	ctx, cancel := lasting(c.Request.Context(), openTimeout)
	defer cancel()
	name, err := g.agentOf(ctx, a, agent)
	if err != nil {
		return turn{}, runReply{}, err
	}
	if len(q.message) > maxMessage {
		if q.message, err = g.keepLong(ctx, a, q.message); err != nil {
			return turn{}, runReply{}, err
		}
	}
	t, reply, err := g.openTurn(ctx, a, name, g.ask(c, who, a, q))
	t.frontEnd = who.key.FrontEnd
	if err == nil {
		c.Header("X-Plan-Id", t.plan)
	}
	return t, reply, err
}

// namedAgent is an agent as a request names it, at a pointer; without a name it is run_agent's.
type namedAgent struct{ agent, pointer string }

// agentOf returns the agent as plan.open names it: none for the planner.
func (g *Gateway) agentOf(ctx context.Context, a actor, n namedAgent) (string, error) {
	agent := cmp.Or(n.agent, g.cfg.RunAgent)
	if agent == "" || agent == agents.Planner {
		return "", nil
	}
	names, err := g.agents(ctx, a)
	if err == nil && !slices.Contains(names, agent) {
		err = problem.New(intents.NotFound, n.pointer, catalog.Like("no such agent; GET "+routeModels+" lists them", agent, names))
	}
	return agent, err
}

// agents returns those that a user's request may name.
func (g *Gateway) agents(ctx context.Context, a actor) ([]string, error) {
	reply, err := g.userOf(ctx, a, bus.UserRequest{Agents: true})
	return append([]string{agents.Planner}, reply.Agents...), err
}

// wantsStream reports whether the client prefers events.
func wantsStream(c *gin.Context) bool {
	return c.NegotiateFormat("application/json", "text/event-stream") == "text/event-stream"
}

// openTurn opens a plan for a message and dispatches it to a manager. If nobody accepts the plan
// it is cancelled, so that a request that is answered with an error does not continue unnoticed.
// A request that has opened one before joins it.
func (g *Gateway) openTurn(ctx context.Context, a actor, agent string, q turnRequest) (turn, runReply, error) {
	if a.session == "" {
		a.session = newID("sess")
	}
	t := turn{actor: a, id: newID("turn"), plan: intents.NewTimedID(intents.KindPlan, g.cfg.Now()), opened: g.cfg.Now(), images: q.images}
	reply := runReply{PlanID: t.plan, SessionID: a.session, TurnID: t.id, TraceID: a.trace}
	standing := ""
	if q.absent {
		standing = t.plan
	}
	grant, _, err := g.issueGrant(a, t.id, standing)
	if err != nil {
		return t, reply, err
	}
	at := intents.Context{TurnID: t.id, PlanID: t.plan}
	texts := q.transient.Salted()
	if err := g.passSkillKey(ctx, a); err != nil {
		return t, reply, err
	}
	args := catalog.PlanOpen{PlanID: t.plan, Task: q.message, Agent: agent, Request: q.request, Turn: q.turn(), Transient: texts.Digests(), Routing: q.routing}
	answer, err := g.submitWith(ctx, a, intent{"plan.open", args, at, grant, ""}, texts)
	if p := problem.FromError(err); err != nil && p.Code == intents.SessionBusy && p.Pointer == "/request" {
		return g.join(ctx, a, p.PlanID)
	}
	if err != nil {
		return t, reply, err
	}
	reply.IntentID, reply.Receipt = answer.IntentID, answer.Receipt
	if answer.Outcome == nil { // waits for approval: the plan is dispatched once people have approved
		reply.Status, reply.Approval = statusPendingApproval, approvalOf(answer, "plan.open")
		return t, reply, nil
	}
	if err := g.dispatch(ctx, t, grant); err != nil {
		if clock.Stopping(ctx) { // after the restart the plan is dispatched again
			return t, reply, problem.Stopped(reply.IntentID, t.plan)
		}
		if _, cerr := g.submit(ctx, a, intent{"cancel", catalog.Cancel{PlanID: t.plan, Reason: "no manager took the turn"}, at, grant, ""}); cerr != nil {
			g.cfg.Log.ErrorContext(ctx, "cancel a plan that nobody took", slog.String("plan_id", t.plan), slog.String("trace_id", a.trace), slog.String("error", cerr.Error()))
		}
		return t, reply, err
	}
	return t, reply, nil
}

func approvalOf(a *intents.Answer, typ string) *bus.Approval {
	out := &bus.Approval{IntentID: a.IntentID, Type: typ, Reason: a.Reason, URL: a.Approval}
	if d := a.Decision; d != nil {
		out.Approvers, out.PolicyIDs = d.Approvers, d.PolicyIDs
		if d.Hold != nil {
			out.Deadline = d.Hold.Deadline
		}
	}
	return out
}

// await follows a turn to its end, within a time limit; take puts its frames into the reply.
func (g *Gateway) await(ctx context.Context, wait time.Duration, t turn, reply *runReply, take func(event) bool) error {
	limited, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	view, err := g.follow(limited, t, 0, g.pace.quiet, func(e event) bool {
		return t.ended && e.Kind == bus.FramePendingApproval || take(e) // what it waited for is decided
	})
	switch {
	case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
		reply.Status = statusExecuting
		return nil
	case err != nil:
		return stopped(ctx, err, reply.IntentID, t.plan)
	}
	if view == nil && reply.Response+reply.Reason == "" && catalog.PlanStatus(reply.Status).Ended() {
		// The frame with the answer is lost, but the plan has the answer.
		v, err := g.viewPlan(ctx, t.actor, t.plan)
		if err != nil { // a refusal that may be repeated would have all of it done again
			g.cfg.Log.WarnContext(ctx, "ask for a plan", slog.String("plan_id", t.plan), slog.String("trace_id", t.trace), slog.String("error", err.Error()))
			reply.Status = statusExecuting
			return nil
		}
		view = &v
	}
	if view == nil {
		return nil
	}
	for _, e := range closing(*view) {
		take(e)
	}
	return nil
}

// take puts a frame into the reply and reports whether more are expected. Data that does not
// match its kind leaves the reply unchanged.
func (r *runReply) take(e event) bool {
	switch e.Kind {
	case bus.FrameAnswer:
		var d bus.AnswerData
		if json.Unmarshal(e.Data, &d) == nil {
			r.Response, r.Data, r.Components = d.Response, d.Data, d.Components
		}
	case bus.FrameError:
		var d bus.ErrorData
		if json.Unmarshal(e.Data, &d) == nil {
			r.Reason, r.Failure = d.Reason, d.Failure
		}
	case bus.FramePendingApproval:
		var d bus.PendingApprovalData
		if json.Unmarshal(e.Data, &d) == nil {
			r.Status, r.Response, r.Approval = statusPendingApproval, d.Text, &d.Approval
			return false
		}
	case bus.FrameDone:
		var d bus.DoneData
		if json.Unmarshal(e.Data, &d) == nil {
			r.Status, r.WorkflowComplete = d.Status, d.WorkflowComplete
		}
		return false
	case bus.FrameStatus, bus.FrameChildContent, bus.FrameToken, bus.FrameAction, bus.FrameRequest:
	}
	return true
}

// reply writes a reply; if the turn has not ended, it says where to follow it.
func (g *Gateway) reply(c *gin.Context, r runReply) error {
	status := http.StatusOK
	if r.Status == statusPendingApproval || r.Status == statusExecuting {
		status = http.StatusAccepted
		c.Header("Location", g.root+"/agent/plans/"+r.PlanID)
	}
	c.JSON(status, r)
	return nil
}
