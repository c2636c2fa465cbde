package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"aob.dev/writ/bus"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/clock"
	"aob.dev/writ/internal/problem"
)

// intentTTL bounds the acceptance of the gateway's own intents, which are signed right before
// they are sent.
const intentTTL = time.Minute

// intent is an intent that the gateway signs for a user.
type intent struct {
	typ     string
	args    any
	context intents.Context // its session is the actor's
	grant   string          // of the same session and turn
	key     string          // its idempotency key; empty: that of its type
}

// submit signs an intent with the gateway's key and sends it. The answer is done or waits for
// approval; everything else is an error.
func (g *Gateway) submit(ctx context.Context, a actor, o intent) (*intents.Answer, error) {
	return g.submitWith(ctx, a, o, nil)
}

// submitWith is submit, and sends texts beside the envelope.
func (g *Gateway) submitWith(ctx context.Context, a actor, o intent, texts intents.Transient) (*intents.Answer, error) {
	signed, id, run, err := g.sign(a, o)
	if err != nil {
		return nil, err
	}
	if signed, err = texts.Beside(signed); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, run+intentTTL)
	defer cancel()
	raw, err := bus.Submit(ctx, g.cfg.Bus, bus.Intents, signed, time.After)
	if err != nil {
		return nil, stopped(ctx, unanswered(err, "the router"), id, o.context.PlanID)
	}
	var answer intents.Answer
	if err := json.Unmarshal(raw, &answer); err != nil {
		return nil, fmt.Errorf("answer to %s: %w", o.typ, err)
	}
	if answer.Position != nil {
		g.saw(*answer.Position)
	}
	if p := problem.OfAnswer(&answer); p != nil && p.Code != intents.ApprovalRequired {
		return nil, inRequest(p)
	}
	if answer.Code == intents.OK && answer.Outcome == nil {
		return nil, fmt.Errorf("answer to %s: done without an outcome", o.typ)
	}
	return &answer, nil
}

// saw remembers the position of an intent, for reads to show what it did.
func (g *Gateway) saw(position int64) {
	for {
		last := g.last.Load()
		if last >= position || g.last.CompareAndSwap(last, position) {
			return
		}
	}
}

// stopped names the intent and the plan of a request that is given up because the process stops. It
// returns other errors unchanged.
func stopped(ctx context.Context, err error, intentID, planID string) error {
	if err != nil && clock.Stopping(ctx) {
		return problem.Stopped(intentID, planID)
	}
	return err
}

// sign signs an intent; run bounds the execution of its type.
func (g *Gateway) sign(a actor, o intent) (signed []byte, id string, run time.Duration, err error) {
	row, ok := catalog.Builtin().Lookup(o.typ)
	if !ok {
		return nil, "", 0, fmt.Errorf("sign: no intent type %q", o.typ)
	}
	args, err := json.Marshal(o.args)
	if err != nil {
		return nil, "", 0, fmt.Errorf("sign %s: %w", o.typ, err)
	}
	o.context.SessionID = a.session
	signed, id, err = intents.Sign(g.cfg.Key, intents.Body{
		Version: intents.Version, Intent: intents.Spec{Type: o.typ, Args: args},
		Actor: intents.Actor{UserID: a.user, Tenant: a.tenant, Grant: o.grant},
		Constraints: intents.Constraints{
			IssuedAt: intents.FormatTime(g.cfg.Now()), TTLSec: int(min(intentTTL, row.TTL()).Seconds()),
			Audience: g.cfg.Origin, IdempotencyKey: cmp.Or(o.key, row.Key(args, a.user, o.context)), Capabilities: row.CapabilitiesFor(args, a.user),
		},
		Context: &o.context, TraceID: a.trace,
	})
	return signed, id, row.Run(), err
}

// request submits a single intent, in a turn and under a grant of its own, and decodes its
// result.
func request[Result any](ctx context.Context, g *Gateway, a actor, typ string, args any, planID string) (Result, error) {
	return requestAt[Result](ctx, g, a, typ, args, intents.Context{TurnID: newID("turn"), PlanID: planID})
}

// requestAt is request in a turn with a given id.
func requestAt[Result any](ctx context.Context, g *Gateway, a actor, typ string, args any, at intents.Context) (Result, error) {
	var out Result
	answer, err := g.submitAt(ctx, a, typ, args, at)
	if err != nil {
		return out, err
	}
	if answer.Outcome == nil {
		return out, unawaited(answer)
	}
	if answer.Details != nil { // details beside a shorter result
		answer.Outcome.Result = answer.Details
	}
	if err := json.Unmarshal(answer.Outcome.Result, &out); err != nil {
		return out, fmt.Errorf("result of %s: %w", typ, err)
	}
	return out, nil
}

// submitAt submits a single intent in a turn, under a grant of its own.
func (g *Gateway) submitAt(ctx context.Context, a actor, typ string, args any, at intents.Context) (*intents.Answer, error) {
	grant, _, err := g.issueGrant(a, at.TurnID, "")
	if err != nil {
		return nil, err
	}
	return g.submit(ctx, a, intent{typ, args, at, grant, ""})
}

// unawaited is the error of a request whose intent waits for approval, which nobody waits for.
func unawaited(a *intents.Answer) error {
	p := problem.New(intents.ApprovalRequired, "", a.Reason)
	p.IntentID, p.TraceID = a.IntentID, a.TraceID
	return p
}

// planPointers are the members of an intent that name its plan or run.
var planPointers = []string{"/context/plan_id", "/intent/args/plan_id", "/intent/args/run_id"}

// inRequest translates pointers into an intent's arguments into pointers into the original
// request. For another user's plan the answer is the same as for a missing plan.
func inRequest(p *problem.Problem) *problem.Problem {
	if p.Code == intents.TaskScope && slices.Contains(planPointers, p.Pointer) { // it may be another user's
		id, trace := p.IntentID, p.TraceID
		p = problem.New(intents.NotFound, "", "no such plan or run of this user")
		p.IntentID, p.TraceID = id, trace
	}
	p.Pointer = requestPointer(p.Pointer)
	for i := range p.Violations {
		p.Violations[i].Pointer = requestPointer(p.Violations[i].Pointer)
	}
	return p
}

func requestPointer(pointer string) string {
	rest, ok := strings.CutPrefix(pointer, "/intent/args")
	switch {
	case pointer == "/context/session_id":
		return "/session_id"
	case !ok:
		return pointer
	case rest == "/task":
		return "/message"
	case rest == "/text":
		return "/query_text"
	default:
		return rest
	}
}

// readIntent reads an intent with the rights of its user.
func (g *Gateway) readIntent(ctx context.Context, a actor, id string) (*intents.Answer, error) {
	if !intents.IsDigest(id) {
		return nil, problem.New(intents.NotFound, "/intent_id", "no such intent")
	}
	return read[*intents.Answer](ctx, g, a, "/v1/intents/"+id, nil)
}

// submits signs a type for the user of a request: its arguments are those of the path, or the body
// (nil).
func (g *Gateway) submits(typ string, ofPath func(*gin.Context) any) func(*gin.Context, caller) error {
	return func(c *gin.Context, who caller) error {
		var args any
		if ofPath != nil {
			args = ofPath(c)
		} else {
			body, err := readJSON(c)
			if err != nil {
				return err
			}
			args = json.RawMessage(body)
		}
		a, err := g.identify(c.Request.Context(), who, claim{})
		if err != nil {
			return err
		}
		out, err := request[json.RawMessage](c.Request.Context(), g, a, typ, args, "")
		return respond(c, out, err)
	}
}

func removedDocument(c *gin.Context) any {
	return catalog.KBRemove{DocumentID: c.Param("id"), Scope: c.Query("scope")}
}

func removedSchedule(c *gin.Context) any { return catalog.ScheduleDelete{ID: c.Param("id")} }
