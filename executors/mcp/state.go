package mcp

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/client/transport"
	wire "github.com/mark3labs/mcp-go/mcp"
)

// state is the transport's observations of one request, for [classify]. It is passed in the
// context, because the protocol library has no other way.
type state struct {
	most        int64        // bytes of the response; 0: as the client's options say
	status      atomic.Int64 // last HTTP status
	after       atomic.Int64 // nanoseconds that the server asks to wait
	limit       atomic.Int64
	tooLarge    atomic.Bool
	sent        atomic.Bool // there was a connection to send it by
	accepted    atomic.Bool // an answer was not a refusal; later failures are about its stream
	undelivered atomic.Bool // there was none: refused, no such name, nobody there, no TLS
	rpc         atomic.Pointer[wire.JSONRPCErrorDetails]
	result      atomic.Pointer[[]byte] // result of the last response, as received
	answer      toolResult             // of a tool, taken out of the result
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
func (st *state) see(method string, r *transport.JSONRPCResponse) {
	if r == nil {
		return
	}
	st.rpc.Store(r.Error)
	if method == string(wire.MethodToolsCall) && len(r.Result) > 0 {
		st.answer, r.Result = readAnswer(r.Result)
	}
	b := []byte(r.Result)
	st.result.Store(&b)
}

// maxStructured bounds structured content in bytes: it is decoded into values and
// checked against a schema, which takes many times the memory and time of a text.
// Larger content can be sent as a text.
const maxStructured = 8 << 20

// cancelTime bounds the sending of a cancellation to a server.
const cancelTime = 5 * time.Second

// cancelled sends a server the cancellation of a request whose caller gave up; the library only
// stops waiting. A server over HTTP without session notices the end of the connection.
func cancelled(ctx context.Context, t transport.Interface, req transport.JSONRPCRequest) {
	if ctx.Err() == nil || req.Method == string(wire.MethodInitialize) {
		return
	}
	n := wire.JSONRPCNotification{JSONRPC: wire.JSONRPC_VERSION}
	n.Method = string(wire.MethodNotificationCancelled)
	n.Params.AdditionalFields = map[string]any{"requestId": req.ID, "reason": "nobody waits for it any more"}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cancelTime)
	go func() { // the caller does not wait for this
		defer cancel()
		_ = t.SendNotification(ctx, n) // a server that does not hear it goes on in vain
	}()
}
