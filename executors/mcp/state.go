package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"

	"github.com/mark3labs/mcp-go/client/transport"
	wire "github.com/mark3labs/mcp-go/mcp"
)

// state is what the transport saw of one request, for [classify]. It is passed in the
// context, because the protocol library has no other way.
type state struct {
	most        int64        // bytes of the response; 0: as the client's options say
	status      atomic.Int64 // last HTTP status
	after       atomic.Int64 // nanoseconds that the server asks to wait
	limit       atomic.Int64
	tooLarge    atomic.Bool
	sent        atomic.Bool // there was a connection to send it by
	taken       atomic.Bool // an answer was no refusal; what follows is about its stream
	undelivered atomic.Bool // there was none: refused, no such name, nobody there, no TLS
	rpc         atomic.Pointer[wire.JSONRPCErrorDetails]
	result      atomic.Pointer[[]byte] // result of the last response, as received
	structured  json.RawMessage        // structured content, taken out of the result
}

type stateKey struct{}

func withState(ctx context.Context) (context.Context, *state) {
	st := &state{}
	return context.WithValue(ctx, stateKey{}, st), st
}

func stateOf(ctx context.Context) *state {
	if st, ok := ctx.Value(stateKey{}).(*state); ok {
		return st
	}
	return &state{}
}

// see records a response for the caller.
func (st *state) see(method string, r *transport.JSONRPCResponse) error {
	if r == nil {
		return nil
	}
	st.rpc.Store(r.Error)
	if method == string(wire.MethodToolsCall) {
		if err := st.takeStructured(r); err != nil {
			return err
		}
	}
	b := []byte(r.Result)
	st.result.Store(&b)
	return nil
}

// maxStructured bounds structured content in bytes: it is decoded into values and
// checked against a schema, which takes many times the memory and time of a text.
// Larger content can be sent as a text.
const maxStructured = 8 << 20

var errStructured = errors.New("structured content too large")

// takeStructured takes the structured content out of a result, so that the library does
// not decode it: only the schema check does.
func (st *state) takeStructured(r *transport.JSONRPCResponse) error {
	var members map[string]json.RawMessage
	if json.Unmarshal(r.Result, &members) != nil {
		return nil //nolint:nilerr // the reader of the result reports what is wrong with it
	}
	const name = "structuredContent"
	content, ok := members[name]
	if !ok || none(content) {
		return nil
	}
	if len(content) > maxStructured {
		st.limit.Store(maxStructured)
		st.tooLarge.Store(true)
		return errStructured
	}
	delete(members, name)
	rest, err := json.Marshal(members)
	if err != nil {
		return err
	}
	st.structured, r.Result = content, rest
	return nil
}
