// Package executors runs the services that execute intents. An executor trusts only a ticket that
// it can verify: the router's statement that one intent, at one journal position, is to be executed
// before a deadline. An executor keeps no more of an intent than its report, in memory, until the
// router has recorded the outcome.
package executors

import (
	"context"
	"encoding/json"
	"sync/atomic"

	"aob.dev/writ/intents"
)

// Handler executes one intent. It runs concurrently with itself, must stop when ctx ends (the
// ticket's deadline), and must be fenced where its effect lands: by Ticket.Position, or by an id
// derived from the intent_id. A *Failure describes the failure; any other error is EXECUTOR_FAILED.
type Handler func(ctx context.Context, o *Intent) (*Result, error)

// WithArgs makes a handler of a function that takes the decoded arguments. It is not
// called with arguments that do not fit: those are MALFORMED_ARGS.
func WithArgs[Args any](h func(ctx context.Context, o *Intent, args Args) (*Result, error)) Handler {
	return func(ctx context.Context, o *Intent) (*Result, error) {
		var args Args
		if err := o.Decode(&args); err != nil {
			return nil, err
		}
		return h(ctx, o, args)
	}
}

// Intent is a verified intent as an executor sees it.
type Intent struct {
	ID      string // intent_id, recomputed from the bytes
	Type    string
	Args    json.RawMessage // canonical
	Key     string          // idempotency key; same when an intent is sent again, even under another intent_id
	Context intents.Context
	TraceID string
	Ticket  intents.Ticket // verified; Ticket.Actor is the user that it is carried out for

	transport *atomic.Pointer[intents.Transport]
	log       *lineLog
}

// Exchange records how far the exchange with the intent's skill server has progressed. The report
// has the last value, also for a run cut off at its deadline. nil: no exchange.
func (o *Intent) Exchange(t *intents.Transport) { o.transport.Store(t) }

// Input is the data that the router resolved for a pointer such as /data, if any.
func (o *Intent) Input(pointer string) (intents.Input, bool) {
	for _, in := range o.Ticket.Inputs {
		if in.Pointer == pointer {
			return in, true
		}
	}
	return intents.Input{}, false
}

// Result of an intent: Value is marshalled and must match the type's result schema.
type Result struct {
	Value  any
	Events []intents.ReportedEvent
}

// Failure is a failed intent as its executor reports it.
type Failure struct { //nolint:errname // it is an outcome first
	Code      intents.Code // of the outcome codes
	Reason    string       // no values of the data
	Retryable bool         // the intent had no effect and may be sent again
	Events    []intents.ReportedEvent
	Details   json.RawMessage // for the caller, such as {expected, actual} of a contract violation

	cause error // for the log only
}

func (f *Failure) Error() string { return string(f.Code) + ": " + f.Reason }

// Fail makes a failure with the code's own retryability.
func Fail(code intents.Code, reason string) *Failure {
	return &Failure{Code: code, Reason: reason, Retryable: code.Info().Retryable}
}

// WithDetails adds details for the caller, unless they do not marshal.
func (f *Failure) WithDetails(details any) *Failure {
	f.Details, _ = json.Marshal(details)
	return f
}

// WithEvent adds an event to the report.
func (f *Failure) WithEvent(event string, payload any) *Failure {
	f.Events = append(f.Events, NewEvent(event, payload))
	return f
}

// NewEvent makes an event; payload must marshal to a JSON object.
func NewEvent(event string, payload any) intents.ReportedEvent {
	raw, err := json.Marshal(payload)
	if err != nil {
		raw = []byte(`{}`)
	}
	return intents.ReportedEvent{Event: event, Payload: raw}
}
