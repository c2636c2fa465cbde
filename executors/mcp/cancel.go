package mcp

import (
	"context"
	"time"

	"github.com/mark3labs/mcp-go/client/transport"
	wire "github.com/mark3labs/mcp-go/mcp"
)

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
