// Package executors runs the services that carry orders out. An executor trusts
// only a ticket that it can verify: in it the router says that one order, at one
// journal position, is to be carried out before a deadline. It keeps no state per
// order.
package executors

import (
	"context"
	"encoding/json"
	"sync/atomic"

	"aob.dev/writ/intents"
)

// Handler carries out one order. It runs concurrently with itself, must stop
// when ctx ends (the ticket's deadline), and must be fenced where its effect
// lands: by Ticket.Position, or by an id derived from the intent_id. A *Failure
// says how it failed; any other error is EXECUTOR_FAILED.
type Handler func(ctx context.Context, o *Order) (*Result, error)

// WithArgs makes a handler of a function that takes the decoded arguments. It is not
// called with arguments that do not fit: those are MALFORMED_ARGS.
func WithArgs[Args any](h func(ctx context.Context, o *Order, args Args) (*Result, error)) Handler {
	return func(ctx context.Context, o *Order) (*Result, error) {
		var args Args
		if err := o.Decode(&args); err != nil {
			return nil, err
		}
		return h(ctx, o, args)
	}
}

// Order is a verified order as an executor sees it.
type Order struct {
	ID      string // intent_id, recomputed from the bytes
	Type    string
	Args    json.RawMessage // canonical
	Key     string          // idempotency key; an order that is sent again keeps it, even under another intent_id
	Context intents.Context
	TraceID string
	Ticket  intents.Ticket // verified; Ticket.Actor is the user that it is carried out for

	transport *atomic.Pointer[intents.Transport]
	log       *lineLog
}

// Exchange says how far the exchange with the order's skill server has come. The report has the last
// word, also of a run that is cut off at its deadline. nil: there is none.
func (o *Order) Exchange(t *intents.Transport) { o.transport.Store(t) }

// Input is the data that the router resolved for a pointer such as /data, if any.
func (o *Order) Input(pointer string) (intents.Input, bool) {
	for _, in := range o.Ticket.Inputs {
		if in.Pointer == pointer {
			return in, true
		}
	}
	return intents.Input{}, false
}

// Result of an order: Value is marshalled and must match the type's result schema.
type Result struct {
	Value any
	Facts []intents.Fact
}

// Failure is a failed order as its executor reports it.
type Failure struct { //nolint:errname // it is an outcome first
	Code      intents.Code // of the outcome codes
	Reason    string       // no values of the data
	Retryable bool         // the order had no effect and may be sent again
	Facts     []intents.Fact
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

// WithFact adds a fact.
func (f *Failure) WithFact(event string, payload any) *Failure {
	f.Facts = append(f.Facts, NewFact(event, payload))
	return f
}

// NewFact makes a fact; payload must marshal to a JSON object.
func NewFact(event string, payload any) intents.Fact {
	raw, err := json.Marshal(payload)
	if err != nil {
		raw = []byte(`{}`)
	}
	return intents.Fact{Event: event, Payload: raw}
}
