package executors

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"strings"

	"aob.dev/writ/intents"
	"aob.dev/writ/storage"
)

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
