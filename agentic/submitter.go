package agentic

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"aob.dev/writ/bus"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/tracing"
)

// intentTTL is how long our intents may wait for acceptance.
const intentTTL = 120

// answerTime bounds one wait for the answer to an intent: the longest execution, plus the
// router's wait for an equal intent in flight. A call that may take longer is then joined again,
// after joinPause.
const (
	answerTime = 4 * time.Minute
	joinPause  = time.Second
)

// signAttempts bounds how often an intent without effect is sent again, noRouterAttempts how
// often one that found no router, which may be restarting, and mostWaited the total wait,
// including the waits that refusals request.
const (
	signAttempts     = 3
	noRouterAttempts = 3
	mostWaited       = 30 * time.Second
)

// Turn identifies the user and the plan for which a role works. Its grant is replaced when a
// fresh one arrives for its driver.
type Turn struct {
	bus.TurnRef
	Driver string `json:"driver"` // of the dispatch

	// For the prompts: information from the request, and the history. Transient may be written nowhere.
	About     *catalog.TurnContext  `json:"about,omitempty"`
	Transient catalog.Transient     `json:"transient,omitzero"`
	History   []catalog.ChatMessage `json:"history,omitempty"`
	Before    *catalog.TurnSummary  `json:"before,omitempty"` // the turn before
	Prior     string                `json:"prior,omitempty"`  // an asked agent's summary of it

	Images []string `json:"images,omitempty"` // of the request, as URLs; empty in place of one that is gone

	Reminder string `json:"reminder,omitempty"` // set by an agent and executed by the turn
}

// Submitter signs intents with one key and submits them: the only way in which a role acts. Safe
// for concurrent use.
type Submitter struct {
	key    intents.Signer
	bus    bus.Conn
	origin string
	now    func() time.Time
	after  func(time.Duration) <-chan time.Time

	mu      sync.Mutex     // guards the rest
	grant   string         // the freshest; empty: the turn's own
	changed chan struct{}  // closed at the next fresh grant; nil: nobody waits
	made    map[string]int // accepted calls, by content
}

// IntentError is an intent that was refused or failed.
type IntentError struct {
	Type   string
	Answer *intents.Answer
}

func (e *IntentError) Error() string {
	return fmt.Sprintf("%s: %s: %s", e.Type, e.Answer.Code, e.Answer.Reason)
}

// codeOf returns the code of an *IntentError; empty: err is none.
func codeOf(err error) intents.Code {
	if refused, ok := errors.AsType[*IntentError](err); ok {
		return refused.Answer.Code
	}
	return ""
}

// Refresh replaces the turn's grant with a fresh one.
func (s *Submitter) Refresh(grant string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.grant = grant
	if s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
}

func (s *Submitter) grantOf(t Turn) string {
	grant, _ := s.freshest(t)
	return grant
}

// freshest returns the grant of a turn, and a channel that is closed when there is a fresher one.
func (s *Submitter) freshest(t Turn) (grant string, changed <-chan struct{}) {
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

// Place is the position of an intent in the plan; the zero Place is the turn itself.
type Place struct {
	Revision, Step int
	TaskID         string
	Ask            string // path of the call that asked for the task; empty: the step's own task
	Call           string // of an agent: "<reply>.<index>"; empty: the intent is no call
	Tool           string // of the call, as the model knows it
	Number         int    // of a client's call; 0: the intent is no call
	Cause          string // the intent from which people edited this one; empty: none
}

// Submit signs an intent, submits it and decodes its result. The router waits for an intent in
// flight. An intent that failed without effect is sent again under the same idempotency key. The
// error is an *IntentError if the router refused; its code is IN_FLIGHT if the deadline of ctx has
// passed and a call goes on.
func (s *Submitter) Submit(ctx context.Context, t Turn, at Place, typ string, args, result any) (*intents.Answer, error) {
	raw, err := json.Marshal(args)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", typ, err)
	}
	c := intents.Context{SessionID: t.SessionID, TurnID: t.TurnID, PlanID: t.PlanID, Revision: at.Revision, Step: at.Step, TaskID: at.TaskID, Ask: at.Ask, Call: at.Call, Tool: at.Tool, Cause: at.Cause, Occurrence: at.Number}
	in := intents.Spec{Type: typ, Args: raw}
	row, ok := catalog.Builtin().Lookup(typ)
	if !ok {
		return nil, fmt.Errorf("%s: no such intent type", typ)
	}
	var a *intents.Answer
	if at.Call != "" {
		c.Occurrence = s.count(in, +1) - 1
		defer func() {
			if a == nil || a.Decision == nil || a.Decision.Verdict == intents.Deny {
				s.count(in, -1) // it was not accepted
			}
		}()
	}
	key := row.Key(raw, t.UserID, c)
	var waited time.Duration
	for attempt := 1; ; attempt++ {
		a, err = s.submitPlan(ctx, t, in, c, key)
		if err != nil && !errors.Is(err, bus.ErrNoResponders) { // no router: the intent had no effect
			return nil, err
		}
		if err == nil && a.Code == intents.InFlight && row.Long() {
			if ctx.Err() != nil {
				break
			}
			select {
			case <-s.after(joinPause):
			case <-ctx.Done():
			}
			attempt--
			continue
		}
		pause, attempts := time.Duration(attempt)*time.Second, noRouterAttempts
		if err == nil {
			pause, attempts = retryDelay(a, pause/4), signAttempts
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
		return a, &IntentError{typ, a}
	}
	if result != nil && a.Outcome != nil {
		if err := json.Unmarshal(a.Outcome.Result, result); err != nil {
			return a, fmt.Errorf("%s: result: %w", typ, err)
		}
	}
	return a, nil
}

// count counts calls with the same content: a model that calls twice means it twice, so each has
// an occurrence of its own.
func (s *Submitter) count(in intents.Spec, n int) int {
	equal := intents.Fingerprint(in, "", intents.Context{})
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.made == nil {
		s.made = make(map[string]int)
	}
	s.made[equal] += n
	return s.made[equal]
}

// begin continues the count of earlier tasks: there were at least n equal calls.
func (s *Submitter) begin(in intents.Spec, n int) {
	if have := s.count(in, 0); n > have {
		s.count(in, n-have)
	}
}

// detailsOf returns the details of an answer beside its result.
func detailsOf(a *intents.Answer) (t catalog.PlanDetails) {
	if a != nil && a.Details != nil {
		_ = json.Unmarshal(a.Details, &t) // written by the router; without it less is known
	}
	return t
}

// retryDelay returns the wait before an intent is sent again that, according to router or
// executor, had no effect: the time given by a refusal, otherwise pause; 0: it is not sent again.
// There is no wait for a failing skill server.
func retryDelay(a *intents.Answer, pause time.Duration) time.Duration {
	said := time.Duration(a.RetryAfter) * time.Second
	switch {
	case a.Outcome != nil && a.Outcome.Status == intents.Failed && a.Outcome.Retryable && a.RetryAfter == 0:
		return pause
	case a.Outcome != nil, a.Code == intents.RateLimited && said == 0: // a budget is exhausted
		return 0
	case a.Code == intents.RateLimited, a.Code == intents.Overloaded, a.Code == intents.InFlight, a.Code == intents.Internal:
		return max(pause, said)
	}
	return 0
}

// sign signs an intent. It states the required capabilities, if any are named.
func (s *Submitter) sign(t Turn, in intents.Spec, c intents.Context, key string, capabilities ...string) (signed []byte, id string, err error) {
	return intents.Sign(s.key, intents.Body{
		Version: intents.Version, Intent: in,
		Actor: intents.Actor{UserID: t.UserID, Tenant: t.Tenant, Grant: s.grantOf(t)},
		Constraints: intents.Constraints{
			IssuedAt: intents.FormatTime(s.now()), TTLSec: intentTTL, Audience: s.origin,
			IdempotencyKey: key, Capabilities: capabilities,
		},
		Context: &c, TraceID: t.TraceID,
	})
}

func (s *Submitter) submitPlan(ctx context.Context, t Turn, in intents.Spec, c intents.Context, key string) (a *intents.Answer, err error) {
	ctx, span := tracing.Start(ctx, "intent "+in.Type, tracing.Type.String(in.Type), tracing.Step.Int(c.Step))
	defer func() {
		if a != nil {
			span.SetAttributes(tracing.Intent.String(a.IntentID), tracing.Code.String(string(a.Code)))
		}
		span.End()
	}()
	signed, id, err := s.sign(t, in, c, key)
	var refused *intents.Refusal
	switch {
	case errors.As(err, &refused): // content that no intent can have: refused as by a router
		return &intents.Answer{Code: refused.Code, Pointer: refused.Pointer, Reason: strings.TrimPrefix(refused.Pointer+": "+refused.Reason, ": "), Hint: refused.Code.Info().Hint}, nil
	case err != nil:
		return nil, fmt.Errorf("%s: %w", in.Type, err)
	}
	within, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	reply, err := bus.Submit(within, s.bus, bus.Intents, signed, s.after)
	if row, _ := catalog.Builtin().Lookup(in.Type); row.Long() && errors.Is(err, context.DeadlineExceeded) {
		return &intents.Answer{IntentID: id, Code: intents.InFlight, Reason: "it takes long, and goes on"}, nil
	}
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
