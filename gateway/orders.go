package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/bus"
	"aob.dev/writ/internal/problem"
)

// orderTTL bounds the acceptance of the gateway's own orders, which are sealed
// right before they are sent.
const orderTTL = time.Minute

// order is what the gateway orders for somebody.
type order struct {
	typ   string
	args  any
	at    intents.Context // its session is the actor's
	grant string          // of the same session and turn
	key   string          // its idempotency key; empty: that of its type
}

// submit seals an order with the gateway's key and sends it. The answer is done
// or held; everything else is an error.
func (g *Gateway) submit(ctx context.Context, a actor, o order) (*intents.Answer, error) {
	sealed, run, err := g.seal(a, o)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, run+orderTTL)
	defer cancel()
	raw, err := bus.Submit(ctx, g.cfg.Bus, sealed, time.After)
	if err != nil {
		return nil, unanswered(err, "the router")
	}
	var answer intents.Answer
	if err := json.Unmarshal(raw, &answer); err != nil {
		return nil, fmt.Errorf("answer to %s: %w", o.typ, err)
	}
	if p := problem.OfAnswer(&answer); p != nil && p.Code != intents.ApprovalRequired {
		return nil, inRequest(p)
	}
	if answer.Code == intents.OK && answer.Outcome == nil {
		return nil, fmt.Errorf("answer to %s: done without an outcome", o.typ)
	}
	return &answer, nil
}

// seal signs an order; run is how long its type may take.
func (g *Gateway) seal(a actor, o order) (sealed []byte, run time.Duration, err error) {
	row, ok := catalog.Builtin().Lookup(o.typ)
	if !ok {
		return nil, 0, fmt.Errorf("seal: no intent type %q", o.typ)
	}
	args, err := json.Marshal(o.args)
	if err != nil {
		return nil, 0, fmt.Errorf("seal %s: %w", o.typ, err)
	}
	o.at.SessionID = a.session
	sealed, _, err = intents.Seal(g.cfg.Key, intents.Body{
		Version: intents.Version, Intent: intents.Intent{Type: o.typ, Args: args},
		Actor: intents.Actor{UserID: a.user, Tenant: a.tenant, Grant: o.grant},
		Constraints: intents.Constraints{
			IssuedAt: intents.FormatTime(g.cfg.Now()), TTLSec: int(min(orderTTL, row.TTL()).Seconds()),
			Audience: g.cfg.Origin, IdempotencyKey: cmp.Or(o.key, row.Key(args, a.user, o.at)), Capabilities: row.Declared(args, a.user),
		},
		Context: &o.at, TraceID: a.trace,
	})
	return sealed, row.Run(), err
}

// request submits an order that stands alone, in a turn and under a grant of
// its own, and decodes its result.
func request[Result any](ctx context.Context, g *Gateway, a actor, typ string, args any, planID string) (Result, error) {
	return requestAt[Result](ctx, g, a, typ, args, intents.Context{TurnID: newID("turn"), PlanID: planID})
}

// requestAt is request in a turn that has been given its id.
func requestAt[Result any](ctx context.Context, g *Gateway, a actor, typ string, args any, at intents.Context) (Result, error) {
	var out Result
	grant, _, err := g.issueGrant(a, at.TurnID, "")
	if err != nil {
		return out, err
	}
	answer, err := g.submit(ctx, a, order{typ, args, at, grant, ""})
	if err != nil {
		return out, err
	}
	if answer.Outcome == nil { // held: what stands alone is not waited for
		p := problem.New(intents.ApprovalRequired, "", answer.Reason)
		p.IntentID, p.TraceID = answer.IntentID, answer.TraceID
		return out, p
	}
	if answer.Told != nil { // beside a result that has less
		answer.Outcome.Result = answer.Told
	}
	if err := json.Unmarshal(answer.Outcome.Result, &out); err != nil {
		return out, fmt.Errorf("result of %s: %w", typ, err)
	}
	return out, nil
}

// inRequest makes pointers into an order's arguments point into the request
// that they came from.
func inRequest(p *problem.Problem) *problem.Problem {
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
