package agentic

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/bus"
	"aob.dev/writ/internal/tracing"
)

// orderTTL is how long our orders may wait for acceptance.
const orderTTL = 120

// answerTime is how long an order may go without an answer: the longest run, and
// what the router waits for an equal order in flight.
const answerTime = 4 * time.Minute

// sealAttempts bounds how often an order that had no effect is sent again, unheardAttempts how often one for which
// no router is there, which may be starting again, and mostWaited how long all of that may take, of which
// a refusal may say how much.
const (
	sealAttempts    = 3
	unheardAttempts = 7
	mostWaited      = 30 * time.Second
)

// Turn says for which user and in which plan a role works. Its grant is replaced
// when a fresh one comes for its driver.
type Turn struct {
	Tenant    string `json:"tenant"`
	UserID    string `json:"user_id"`
	SessionID string `json:"session_id"`
	TurnID    string `json:"turn_id"`
	PlanID    string `json:"plan_id"`
	TraceID   string `json:"trace_id,omitempty"`
	Driver    string `json:"driver"` // of the hand-out
	Grant     string `json:"grant"`

	// For the prompts: what the request says of itself, and what was said before.
	About   *catalog.TurnContext `json:"about,omitempty"`
	History []catalog.Said       `json:"history,omitempty"`
	Before  *catalog.Did         `json:"before,omitempty"` // the turn before
	Prior   string               `json:"prior,omitempty"`  // what an asked agent is told of it

	Reminder string `json:"reminder,omitempty"` // that an agent has put, and the turn carries out
}

// Sealer seals orders with one key and submits them: the only way in which a
// role acts. Safe for concurrent use.
type Sealer struct {
	key    intents.Signer
	bus    bus.Conn
	origin string
	now    func() time.Time
	after  func(time.Duration) <-chan time.Time

	mu      sync.Mutex     // guards the rest
	grant   string         // the freshest; empty: the turn's own
	changed chan struct{}  // closed at the next fresh grant; nil: nobody waits
	made    map[string]int // calls that were accepted, by what they ask for
}

// OrderError is an order that was refused or failed.
type OrderError struct {
	Type   string
	Answer *intents.Answer
}

func (e *OrderError) Error() string {
	return fmt.Sprintf("%s: %s: %s", e.Type, e.Answer.Code, e.Answer.Reason)
}

// Refresh puts a fresh grant in place of the turn's.
func (s *Sealer) Refresh(grant string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.grant = grant
	if s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
}

func (s *Sealer) grantOf(t Turn) string {
	grant, _ := s.freshest(t)
	return grant
}

// freshest is the grant of a turn, and what is closed when there is a fresher one.
func (s *Sealer) freshest(t Turn) (grant string, changed <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.changed == nil {
		s.changed = make(chan struct{})
	}
	if s.grant != "" {
		return s.grant, s.changed
	}
	return t.Grant, s.changed
}

// Place is where in the plan an order stands; the zero Place is the turn itself.
type Place struct {
	Revision, Step int
	TaskID         string
	Ask            string // path of the call that asked for the task; empty: it is the step's own
	Call           string // of an agent: "<reply>.<index>"; empty: the order is none
	Number         int    // of a client's call; 0: the order is none
	Cause          string // the order that people have made this one of; empty: none
}

// Order seals an order, submits it and decodes its result. The router waits for an
// order in flight. An order that failed without effect is sent again under the same
// idempotency key. The error is an *OrderError if the router refused.
func (s *Sealer) Order(ctx context.Context, t Turn, at Place, typ string, args, result any) (*intents.Answer, error) {
	raw, err := json.Marshal(args)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", typ, err)
	}
	c := intents.Context{SessionID: t.SessionID, TurnID: t.TurnID, PlanID: t.PlanID, Revision: at.Revision, Step: at.Step, TaskID: at.TaskID, Ask: at.Ask, Call: at.Call, Cause: at.Cause, Occurrence: at.Number}
	in := intents.Intent{Type: typ, Args: raw}
	row, ok := catalog.Builtin().Lookup(typ)
	if !ok {
		return nil, fmt.Errorf("%s: no such intent type", typ)
	}
	var a *intents.Answer
	if at.Call != "" {
		c.Occurrence = s.count(in, +1) - 1
		defer func() {
			if a == nil || a.Decision == nil || a.Decision.Verdict == intents.Deny {
				s.count(in, -1) // it was none
			}
		}()
	}
	key := row.Key(raw, t.UserID, c)
	var waited time.Duration
	for attempt := 1; ; attempt++ {
		a, err = s.submit(ctx, t, in, c, key)
		if err != nil && !errors.Is(err, bus.ErrNoResponders) { // nobody listened: it had no effect
			return nil, err
		}
		pause, attempts := time.Duration(attempt)*time.Second, unheardAttempts
		if err == nil {
			pause, attempts = again(a, pause/4), sealAttempts
		}
		if waited += pause; pause == 0 || attempt >= attempts || waited > mostWaited {
			break
		}
		select {
		case <-s.after(pause):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if err != nil {
		return nil, err
	}
	if a.Code != intents.OK {
		return a, &OrderError{typ, a}
	}
	if result != nil && a.Outcome != nil {
		if err := json.Unmarshal(a.Outcome.Result, result); err != nil {
			return a, fmt.Errorf("%s: result: %w", typ, err)
		}
	}
	return a, nil
}

// count counts the calls that ask for the same: a model that calls twice means it twice,
// so each has an occurrence of its own.
func (s *Sealer) count(in intents.Intent, n int) int {
	equal := intents.Fingerprint(in, "", intents.Context{})
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.made == nil {
		s.made = make(map[string]int)
	}
	s.made[equal] += n
	return s.made[equal]
}

// begin goes on counting from earlier tasks: there were at least n equal calls.
func (s *Sealer) begin(in intents.Intent, n int) {
	if have := s.count(in, 0); n > have {
		s.count(in, n-have)
	}
}

// toldBy is what an answer tells beside its result.
func toldBy(a *intents.Answer) (t catalog.Told) {
	if a != nil && a.Told != nil {
		_ = json.Unmarshal(a.Told, &t) // the router's own; without it less is known
	}
	return t
}

// again is how long to wait before an order is sent again that, according to router or executor, had no effect:
// as long as a refusal says, else a pause; 0: it is not sent again. A skill server that fails is not waited for.
func again(a *intents.Answer, pause time.Duration) time.Duration {
	said := time.Duration(a.RetryAfter) * time.Second
	switch {
	case a.Outcome != nil && a.Outcome.Status == intents.Failed && a.Outcome.Retryable && a.RetryAfter == 0:
		return pause
	case a.Outcome != nil, a.Code == intents.RateLimited && said == 0: // a budget is spent
		return 0
	case a.Code == intents.RateLimited, a.Code == intents.Overloaded, a.Code == intents.InFlight, a.Code == intents.Internal:
		return max(pause, said)
	}
	return 0
}

// seal signs an order. It states the capabilities that it needs, if any are named.
func (s *Sealer) seal(t Turn, in intents.Intent, c intents.Context, key string, capabilities ...string) (sealed []byte, id string, err error) {
	return intents.Seal(s.key, intents.Body{
		Version: intents.Version, Intent: in,
		Actor: intents.Actor{UserID: t.UserID, Tenant: t.Tenant, Grant: s.grantOf(t)},
		Constraints: intents.Constraints{
			IssuedAt: intents.FormatTime(s.now()), TTLSec: orderTTL, Audience: s.origin,
			IdempotencyKey: key, Capabilities: capabilities,
		},
		Context: &c, TraceID: t.TraceID,
	})
}

func (s *Sealer) submit(ctx context.Context, t Turn, in intents.Intent, c intents.Context, key string) (a *intents.Answer, err error) {
	ctx, span := tracing.Start(ctx, "order "+in.Type, tracing.Type.String(in.Type), tracing.Step.Int(c.Step))
	defer func() {
		if a != nil {
			span.SetAttributes(tracing.Order.String(a.IntentID), tracing.Code.String(string(a.Code)))
		}
		span.End()
	}()
	sealed, id, err := s.seal(t, in, c, key)
	var refused *intents.Refusal
	switch {
	case errors.As(err, &refused): // what no intent can say: as a router would refuse it
		return &intents.Answer{Code: refused.Code, Pointer: refused.Pointer, Reason: strings.TrimPrefix(refused.Pointer+": "+refused.Reason, ": "), Hint: refused.Code.Info().Hint}, nil
	case err != nil:
		return nil, fmt.Errorf("%s: %w", in.Type, err)
	}
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	reply, err := bus.Submit(ctx, s.bus, sealed, s.after)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", in.Type, err)
	}
	if err := json.Unmarshal(reply, &a); err != nil {
		return nil, fmt.Errorf("%s: answer: %w", in.Type, err)
	}
	if a.IntentID == "" {
		a.IntentID = id
	}
	return a, nil
}
