// Package executors runs the services that execute intents. An executor trusts only a ticket that
// it can verify: the router's statement that one intent, at one journal position, is to be executed
// before a deadline. An executor keeps no more of an intent than its report, in memory, until the
// router has recorded the outcome.
package executors

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"strings"
	"sync/atomic"

	"aob.dev/writ/bus"
	"aob.dev/writ/intents"
	"aob.dev/writ/storage"
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
	progress  *atomic.Pointer[bus.Progress]
	log       *lineLog
	redactor  *redactor // nil: nothing is removed from results
}

// Progress records how far the intent is, for whoever waits for it. The message is dropped if a
// policy masks the result.
func (o *Intent) Progress(p bus.Progress) {
	if !intents.Keepable(o.Ticket.Obligations) {
		p.Message = ""
	}
	o.progress.Store(&p)
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
	Value   any
	Events  []intents.ReportedEvent
	Sources []intents.Source // of the stored content in Value
	Images  []intents.Image  // of Value, for the model that asked
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

// Data is the input of an intent: the one that the router resolved from "from", or a member of the
// arguments. The caller closes it.
type Data struct {
	io.ReadCloser
	Size int64
}

// Data opens the intent's data at a pointer: the ticket's input, else given (a
// member of the arguments; empty: none). Nothing is read yet. ok is false where
// the intent has no data there.
func (o *Intent) Data(ctx context.Context, blobs storage.Blobs, pointer string, given []byte) (d Data, ok bool, err error) {
	in, resolved := o.Input(pointer)
	switch {
	case resolved && in.Ref != "":
		d, err = o.open(ctx, blobs, in)
		return d, err == nil, err
	case resolved:
		given = in.Value
	}
	if len(given) == 0 {
		return Data{}, false, nil
	}
	return Data{io.NopCloser(bytes.NewReader(given)), int64(len(given))}, true, nil
}

// maxInline bounds a value inside an intent or a ticket, in bytes.
const maxInline = 1 << 20

// Content opens the intent's data at a pointer as the bytes to be stored: a JSON string as its
// text, any other value as its JSON, and referenced data unchanged. An intent without data is
// MALFORMED_ARGS.
func (o *Intent) Content(ctx context.Context, blobs storage.Blobs, pointer string, given []byte) (io.ReadCloser, error) {
	d, ok, err := o.Data(ctx, blobs, pointer, given)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, Fail(intents.MalformedArgs, "there is nothing to store: data or from is needed")
	}
	if in, resolved := o.Input(pointer); resolved && in.Ref != "" {
		return d, nil
	}
	raw, err := d.ReadAll(maxInline)
	if err != nil {
		return nil, err
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		raw = []byte(text)
	}
	return io.NopCloser(bytes.NewReader(raw)), nil
}

// open opens a reference: a blob of the tenant, or a temporary file of the intent's
// step (without a task, of its plan; without a plan, of its turn). The bytes must
// have the digest that the ticket names.
func (o *Intent) open(ctx context.Context, blobs storage.Blobs, in intents.Input) (Data, error) {
	if strings.HasPrefix(in.Ref, "cas://") {
		if in.SHA256 != "" && in.Ref != "cas://"+in.SHA256 {
			return Data{}, Fail(intents.MalformedArgs, "the data does not have the digest that the ticket names")
		}
		r, size, err := blobs.Fetch(ctx, o.Ticket.Actor.Tenant, in.Ref)
		if err != nil {
			return Data{}, Store(err)
		}
		return Data{r, size}, nil
	}
	scope, err := o.inputScope()
	if err != nil {
		return Data{}, err
	}
	r, file, err := blobs.Open(ctx, scope.At(in.Step), in.Ref)
	if err != nil {
		return Data{}, Store(err)
	}
	if in.SHA256 != "" && file.SHA256 != in.SHA256 {
		_ = r.Close()
		return Data{}, Fail(intents.MalformedArgs, "the data does not have the digest that the ticket names")
	}
	return Data{r, file.Size}, nil
}

// inputScope is the scope of the files that the intent may read: the router found them there.
func (o *Intent) inputScope() (storage.Scope, error) {
	tenant := o.Ticket.Actor.Tenant
	switch {
	case o.Ticket.Scope != nil:
		return o.Scope()
	case o.Context.PlanID != "":
		return storage.Scope{Tenant: tenant, Plan: o.Context.PlanID}, nil
	case o.Context.TurnID != "":
		return storage.TurnScope(tenant, o.Context.TurnID), nil
	}
	return o.Scope()
}

// ReadAll reads data of at most limit bytes; more is OVERSIZED_OUTPUT.
func (d Data) ReadAll(limit int64) ([]byte, error) {
	raw, err := io.ReadAll(io.LimitReader(d, limit+1))
	if err != nil {
		return nil, Store(err)
	}
	if int64(len(raw)) > limit {
		return nil, Fail(intents.OversizedOutput, "the data is too large for this intent")
	}
	return raw, nil
}
