package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/client/transport"
	wire "github.com/mark3labs/mcp-go/mcp"

	"aob.dev/writ/internal/egress"
	"aob.dev/writ/internal/visible"
	"aob.dev/writ/schemas"
)

// The kinds of [Error], for errors.Is. Only after ErrUnavailable may the same
// request succeed later.
var (
	ErrUnavailable = errors.New("skill server unavailable")              // down, too slow, overloaded, cut off
	ErrRefused     = errors.New("skill server refused the request")      // credentials, address, protocol
	ErrTool        = errors.New("skill failed")                          // as the tool itself reports
	ErrSchema      = errors.New("skill breaks its schema")               // output or manifest violates its declaration
	ErrTooLarge    = errors.New("skill response too large")              // above MaxBytes
	ErrChanged     = errors.New("skill differs from its pinned version") // the digest is another one
	ErrNotOffered  = errors.New("the operation is not offered")          // of an OpenAPI document
	ErrPrincipal   = errors.New("skill answered for another principal")  // an incident: never retried, never shown
	ErrUnconnected = errors.New("the user is not connected to the server")
)

// Error is a failed request to a skill server.
type Error struct {
	Kind   error  // one of the above
	Tool   string // empty where it is not about one
	Reason string // one clause, without control characters
	// Undelivered reports that the tool has certainly not received the call.
	Undelivered bool
	// Unexplained reports that the server failed without reporting whether the tool had its effect.
	Unexplained bool
	// Malformed reports that the answer violates the protocol.
	Malformed bool
	// Link is where the user connects, with ErrUnconnected.
	Link string
	// Barred reports that the server may not be called from here.
	Barred bool
	Err    error

	after time.Duration // that the server asks to wait
	late  bool          // the call's time was over
}

func (e *Error) Error() string {
	s := e.Kind.Error()
	if e.Tool != "" {
		s = fmt.Sprintf("%s: %s", e.Tool, s)
	}
	if e.Reason != "" {
		s += ": " + e.Reason
	}
	if e.Err == nil {
		return s
	}
	if text := egress.Plain(e.Err).Error(); e.Reason == "" || text == e.Err.Error() {
		s += ": " + visible.Line(text, maxReason)
	}
	return s
}

// Unwrap gives the kind and the cause.
func (e *Error) Unwrap() []error {
	if e.Err == nil {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.Err}
}

// Retryable reports whether the same request may succeed later.
func (e *Error) Retryable() bool { return errors.Is(e.Kind, ErrUnavailable) }

// Broken reports whether the server failed to answer as a server; with any other answer it works.
func (e *Error) Broken() bool { return e.Malformed || e.Retryable() }

// maxReason bounds the text of a server in an error, in bytes.
const maxReason = 2048

// maxViolations is how many violations an error names.
const maxViolations = 3

// describe lists violations as "pointer: reason".
func describe(found []schemas.Violation) string {
	var parts []string
	for i, v := range found {
		if i == maxViolations {
			parts = append(parts, fmt.Sprintf("and %d more", len(found)-i))
			break
		}
		parts = append(parts, visible.Line(cmp.Or(v.Pointer, "/"), 200)+": "+visible.Line(v.Reason, 300))
	}
	return strings.Join(parts, "; ")
}

// classify makes the error of a request that failed with err. ctx is the context of the attempt, st
// the transport's observations.
func classify(ctx context.Context, st *state, err error, cn *conn) *Error {
	status := st.status.Load()
	e := &Error{Kind: ErrUnavailable, Undelivered: st.undelivered.Load(), Err: err}
	var broken *transport.Error
	var refused *egress.RefusedError
	var own *Error
	switch {
	case errors.As(err, &own): // nothing was sent
		*e = *own
	case st.tooLarge.Load():
		*e = Error{Kind: ErrTooLarge, Reason: fmt.Sprintf("more than %d bytes", st.limit.Load())}
	case ctx.Err() != nil:
		e.Reason, e.Err = "given up by the caller", context.Cause(ctx)
		if errors.Is(e.Err, context.DeadlineExceeded) {
			e.Reason = "no answer in time"
		}
	case errors.As(err, &refused):
		*e = Error{Kind: ErrRefused, Reason: refused.Error(), Undelivered: true, Barred: true}
	case errors.Is(err, transport.ErrAuthorizationRequired):
		e.Kind, e.Reason = ErrRefused, "it asks for other credentials (401)"
	case status == http.StatusForbidden && errors.Is(err, transport.ErrLegacySSEServer): // the library's error for most refusals
		e.Kind, e.Reason, e.Err = ErrRefused, "it refuses these credentials (HTTP 403)", nil
	case errors.Is(err, transport.ErrLegacySSEServer):
		e.Kind, e.Reason, e.Err = ErrRefused, fmt.Sprintf("no MCP server at this address (HTTP %d)", status), nil
	case status >= 300 && status < 400:
		e.Kind, e.Reason, e.Err = ErrRefused, fmt.Sprintf("it redirects elsewhere (HTTP %d), which is not followed", status), nil
	case refusal(int(status)):
		e.Kind, e.Reason = ErrRefused, fmt.Sprintf("HTTP %d", status)
	case status >= 400:
		e.Reason, e.after = fmt.Sprintf("HTTP %d", status), time.Duration(st.after.Load())
		// 503 alone may come from an intermediary that has forwarded the request.
		e.Undelivered = !st.accepted.Load() && (status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable && e.after > 0)
	case st.rpc.Load() != nil:
		r := st.rpc.Load()
		*e = Error{Kind: ErrTool, Reason: fmt.Sprintf("%s (%d)", visible.Line(r.Message, maxReason), r.Code), Unexplained: r.Code == wire.INTERNAL_ERROR}
	case errors.As(err, &broken):
		switch e.Err = broken.Err; {
		case cn.dead():
			e.Reason, e.Err = "the server process ended", nil
		case errors.Is(err, transport.ErrTransportClosed):
			e.Err = io.ErrUnexpectedEOF
		}
	default:
		e.Kind, e.Reason, e.Malformed = ErrSchema, "malformed response", true
	}
	return e
}

// refusal reports whether a second request would get the same status.
func refusal(status int) bool {
	switch status {
	case http.StatusNotFound, http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return false
	}
	return status >= 400 && status < 500
}

// shortestSecret is how long a secret must be to be hidden: shorter ones would stand in
// ordinary words.
const shortestSecret = 6

// hider hides the secrets of a source in texts of its server, which may repeat them.
func (s *Settings) hider() func(string) string {
	longFirst := slices.Clone(s.Secrets) // one may be a part of another
	slices.SortFunc(longFirst, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	var pairs []string
	for _, secret := range longFirst {
		if len(secret) >= shortestSecret {
			pairs = append(pairs, secret, "(secret)")
		}
	}
	return strings.NewReplacer(pairs...).Replace
}

// conceal hides the secrets of the source in an error, in place.
func (c *Client) conceal(err error) error {
	var e *Error
	if !errors.As(err, &e) {
		return err
	}
	e.Reason = c.hide(e.Reason)
	if e.Err != nil {
		if text := e.Err.Error(); c.hide(text) != text {
			e.Err = errors.New(c.hide(text))
		}
	}
	return err
}
