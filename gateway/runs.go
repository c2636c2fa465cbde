package gateway

import (
	"cmp"
	"encoding/json"
	"log/slog"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"aob.dev/writ/bus"
	"aob.dev/writ/gateway/readapi"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/problem"
)

// runStart is the body of POST /v1/runs.
type runStart struct {
	claim
	catalog.WorkflowStart
}

// startReply answers a request that opens a run: 201 with the run, or 202 while it waits for
// people.
type startReply struct {
	*catalog.PlanView
	IntentID string        `json:"intent_id"`
	Receipt  string        `json:"receipt,omitempty"`
	Approval *bus.Approval `json:"approval,omitempty"`
}

// startRun is POST /v1/runs. A request that is sent again with its Idempotency-Key is one intent:
// it has the turn and the key of the first, and so its run.
func (g *Gateway) startRun(c *gin.Context, who caller) error {
	var body runStart
	if err := readBody(c, &body); err != nil {
		return err
	}
	if body.Inputs == nil {
		body.Inputs = json.RawMessage(`{}`)
	}
	a, err := g.identify(c.Request.Context(), who, body.claim)
	if err != nil {
		return err
	}
	return g.openRun(c, a, "workflow.start", body.WorkflowStart)
}

// replayRun is POST /v1/runs/{run_id}/replay.
func (g *Gateway) replayRun(c *gin.Context, who caller) error {
	var body struct {
		claim
		catalog.RunReplay
	}
	if err := readBody(c, &body); err != nil {
		return err
	}
	a, err := g.identify(c.Request.Context(), who, body.claim)
	if err != nil {
		return err
	}
	body.RunID = c.Param("run_id")
	return g.openRun(c, a, "run.replay", body.RunReplay)
}

// openRun signs the intent of a run and dispatches the run to a workflow engine. If none accepts
// it, it has no driver, and is dispatched as soon as an engine is available.
func (g *Gateway) openRun(c *gin.Context, a actor, typ string, args any) error {
	ctx, cancel := lasting(c.Request.Context(), openTimeout)
	defer cancel()
	o := intent{typ: typ, args: args, context: intents.Context{TurnID: newID("turn")}}
	session := newID("sess")
	if sent := c.GetHeader("Idempotency-Key"); sent != "" {
		o.key = intents.Digest([]byte("run\n" + a.user + "\n" + sent))
		session, o.context.TurnID = "sess_"+o.key[7:33], "turn_"+o.key[7:33]
	}
	a.session = cmp.Or(a.session, session)
	var err error
	if o.grant, _, err = g.issueGrant(a, o.context.TurnID, ""); err != nil {
		return err
	}
	if err := g.passSkillKey(ctx, a); err != nil {
		return err
	}
	answer, err := g.submit(ctx, a, o)
	if err != nil {
		return err
	}
	reply := startReply{IntentID: answer.IntentID, Receipt: answer.Receipt}
	if answer.Outcome == nil {
		reply.Approval = approvalOf(answer, typ)
		c.JSON(http.StatusAccepted, reply)
		return nil
	}
	if err := json.Unmarshal(answer.Outcome.Result, &reply.PlanView); err != nil {
		return err
	}
	if !answer.Replayed {
		v := *reply.PlanView
		t := turn{actor: a, id: v.TurnID, plan: v.PlanID, opened: v.CreatedAt, run: true, life: lifeOf(v.Run.MaxDays)}
		if err := g.dispatch(ctx, t, o.grant); err != nil {
			g.cfg.Log.WarnContext(ctx, "hand out a run", slog.String("run_id", t.plan), slog.String("trace_id", a.trace), slog.String("error", err.Error()))
		}
	}
	c.Header("Location", g.root+"/v1/runs/"+reply.PlanID)
	c.JSON(http.StatusCreated, reply)
	return nil
}

// lifeOf returns how long a plan may go on without its user: a run for the days of its
// definition.
func lifeOf(days int) time.Duration { return time.Duration(max(1, days)) * standingLife }

// listRuns is GET /v1/runs: ?workflow_id=, ?status=, ?limit=, ?after=.
func (g *Gateway) listRuns(c *gin.Context, a actor) error {
	q := chosen(c, "workflow_id", "status", "limit", "after")
	q.Set("runs", "true")
	page, err := read[catalog.PlanListResult](c.Request.Context(), g, a, readapi.Plans, q)
	return respond(c, page, err)
}

// patchRun is POST /v1/runs/{run_id}/patch: a patch of its graph.
func (g *Gateway) patchRun(c *gin.Context, who caller) error {
	body, err := readJSON(c)
	if err != nil {
		return err
	}
	a, runID, err := g.identifyForPlan(c, who)
	if err != nil {
		return err
	}
	answer, err := g.submitAt(c.Request.Context(), a, "graph.patch", catalog.GraphPatch{RunID: runID, Patch: body}, intents.Context{TurnID: newID("turn")})
	if err != nil {
		return err
	}
	select {
	case g.patched <- struct{}{}:
	default:
	}
	status, reply := http.StatusOK, startReply{IntentID: answer.IntentID, Receipt: answer.Receipt}
	if answer.Outcome == nil {
		status, reply.Approval = http.StatusAccepted, approvalOf(answer, "graph.patch")
	}
	c.JSON(status, reply)
	return nil
}

// getRun is GET /v1/runs/{run_id}.
func (g *Gateway) getRun(c *gin.Context, a actor, runID string) error {
	view, err := g.viewPlan(c.Request.Context(), a, runID)
	if err == nil && view.Run == nil {
		err = problem.New(intents.NotFound, "", "no such run")
	}
	return respond(c, view, err)
}
