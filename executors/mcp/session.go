package mcp

import (
	"context"
	"net/http"
	"time"

	wire "github.com/mark3labs/mcp-go/mcp"
)

// A server of a protocol before 2026-07-28 may forget a session, and not all say so by 404: some
// answer 400, 503, or 200 with an error. A ping shows what such an answer means, since it has no effect:
// where the session is forgotten, it fares like any other request.

// pingTime bounds a ping. Without an answer in time the session counts as known.
const pingTime = 5 * time.Second

// renew begins a new session if the server has forgotten the present one. It comes before a call that
// must not be sent twice: after the call, an answer of 503 or an error would not tell whether it ran.
func (c *Client) renew(ctx context.Context) {
	for fresh := false; ; fresh = true {
		cn, err := c.acquire(ctx)
		if err != nil {
			return // the call fails with it, too
		}
		known := c.knows(ctx, cn)
		if !known && fresh {
			c.pingless.Store(true)
		} else if !known {
			c.drop(cn)
		}
		c.release(cn)
		if known || fresh {
			return
		}
	}
}

// knows reports whether the server of a connection knows its session, or has none.
func (c *Client) knows(ctx context.Context, cn *conn) bool {
	if cn.rpc.GetSessionId() == "" || c.pingless.Load() {
		return true
	}
	ctx, st := withState(ctx)
	ctx, cancel := context.WithTimeout(ctx, pingTime)
	defer cancel()
	err := cn.rpc.Ping(ctx) //nolint:staticcheck // SA1019: only revisions with sessions get here, and those have it
	r := st.rpc.Load()
	return err == nil || ctx.Err() != nil || st.status.Load() == http.StatusOK && r != nil && r.Code == wire.METHOD_NOT_FOUND
}

// failed is the error of a request. Where a new connection may do better, the next request makes one.
// forgotten reports that the server has forgotten the session, and that the request may be repeated.
func (c *Client) failed(ctx context.Context, st *state, err error, cn *conn, safe bool) (e *Error, forgotten bool) {
	e = classify(ctx, st, err, cn)
	status := st.status.Load()
	if ctx.Err() == nil && safe && !e.Retryable() && !e.Undelivered && status != http.StatusUnauthorized && status != http.StatusForbidden && !c.knows(ctx, cn) {
		e, forgotten = &Error{Kind: ErrUnavailable, Reason: "it has forgotten the session", Err: err}, true
	}
	if e.Retryable() && ctx.Err() == nil || status >= http.StatusBadRequest {
		c.drop(cn)
	}
	return e, forgotten
}
