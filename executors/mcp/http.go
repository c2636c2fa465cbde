package mcp

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptrace"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"

	"aob.dev/writ/internal/egress"
)

// tappedHTTP is the streamable HTTP transport, which also shows responses as
// received: the library's own types keep only a part of a schema.
type tappedHTTP struct{ *transport.StreamableHTTP }

func (t tappedHTTP) SendRequest(ctx context.Context, req transport.JSONRPCRequest) (*transport.JSONRPCResponse, error) {
	r, err := t.StreamableHTTP.SendRequest(ctx, req)
	if err == nil {
		stateOf(ctx).see(req.Method, r)
	} else if t.GetSessionId() != "" {
		cancelled(ctx, t, req)
	}
	return r, err
}

var (
	_ transport.HTTPConnection         = tappedHTTP{}
	_ transport.BidirectionalInterface = tappedHTTP{}
)

// openHTTP prepares a connection; nothing is sent yet.
func (c *Client) openHTTP(context.Context) (*conn, error) {
	hc := egress.Client(jsonTransport{limitTransport{c.opt.RoundTripper, c.headers, c.opt.MaxBytes}})
	tr, err := transport.NewStreamableHTTP(c.src.URL,
		transport.WithHTTPBasicClient(hc), transport.WithHTTPLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		return nil, err
	}
	rpc := client.NewClient(tappedHTTP{tr})
	return &conn{rpc: rpc, dead: func() bool { return false }, close: func() { _ = rpc.Close() }}, nil
}

// headers are those of every request, as they are now.
func (c *Client) headers() http.Header {
	if c.opt.Header != nil {
		return c.opt.Header
	}
	return c.src.headers()
}

// limitTransport adds the client's headers to requests and bounds responses.
type limitTransport struct {
	next   http.RoundTripper
	header func() http.Header
	limit  int64
}

func (b limitTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	st := stateOf(req.Context())
	st.undelivered.Store(!st.sent.Load())
	req = req.Clone(httptrace.WithClientTrace(req.Context(), &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) {
		st.sent.Store(true)
		st.undelivered.Store(false)
	}}))
	// Because of the Idempotency-Key, net/http would repeat a POST by itself when a
	// reused connection breaks. Only Call repeats, by the skill's effect.
	req.GetBody = nil
	for name, values := range b.header() {
		if _, set := req.Header[name]; !set { // a header of the protocol wins
			req.Header[name] = values
		}
	}
	st.status.Store(0)
	resp, err := b.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	st.status.Store(int64(resp.StatusCode))
	if resp.StatusCode < http.StatusBadRequest {
		st.accepted.Store(true)
	}
	st.after.Store(int64(egress.RetryAfter(resp.Header, time.Now())))
	limit := b.limit
	if st.most > 0 {
		limit = min(limit, st.most+responseFrame)
	}
	st.limit.Store(limit)
	resp.Body = &boundedBody{resp.Body, limit, st}
	return resp, nil
}

// responseFrame bounds what surrounds a result, in bytes.
const responseFrame = 64 << 10

var errBody = errors.New("response too large")

// boundedBody fails instead of giving more than left bytes.
type boundedBody struct {
	io.ReadCloser
	left int64
	st   *state
}

func (b *boundedBody) Read(p []byte) (int, error) {
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1]
	}
	n, err := b.ReadCloser.Read(p)
	if int64(n) > b.left {
		b.st.tooLarge.Store(true)
		return 0, errBody
	}
	b.left -= int64(n)
	return n, err
}
