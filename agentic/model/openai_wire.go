package model

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/openai/openai-go/v3"
)

// openaiWire is the transport below the library: it leaves out the headers by which
// the library describes this machine, bounds what is read, and notes status
// and header for [openaiError], which the library drops when an error has no body.
type openaiWire struct{ next http.RoundTripper }

// maxResponseBytes bounds a response, stream overhead included.
const maxResponseBytes = 64 << 20

func (w openaiWire) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	for name := range req.Header {
		if strings.HasPrefix(name, "X-Stainless-") {
			delete(req.Header, name)
		}
	}
	req.Header.Set("User-Agent", "writ")
	resp, err := w.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if s, ok := req.Context().Value(lastResponseKey{}).(*lastResponse); ok {
		s.resp.Store(resp)
	}
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.LimitReader(resp.Body, maxResponseBytes), resp.Body} // what is cut is malformed
	return resp, nil
}

// lastResponse is the last response to one attempt.
type lastResponse struct{ resp atomic.Pointer[http.Response] }

type lastResponseKey struct{}

func withLastResponse(ctx context.Context) (context.Context, *lastResponse) {
	s := &lastResponse{}
	return context.WithValue(ctx, lastResponseKey{}, s), s
}

// status is 0 while there is no response.
func (s *lastResponse) status() int {
	if r := s.resp.Load(); r != nil {
		return r.StatusCode
	}
	return 0
}

func (s *lastResponse) header() http.Header {
	if r := s.resp.Load(); r != nil {
		return r.Header
	}
	return nil
}

// openaiError turns the library's error into ours. It keeps neither the library's
// error, which holds the request with its key, nor the server's message, which
// may quote the prompt.
func openaiError(ctx context.Context, status int, err error) *Error {
	var api *openai.Error
	errors.As(err, &api)
	switch {
	case ctx.Err() != nil:
		if errors.Is(ctx.Err(), context.Canceled) {
			return &Error{Reason: "the model was not waited for", Retryable: true, Err: context.Canceled}
		}
		return &Error{Reason: "the model did not answer in time", Retryable: true, Err: context.DeadlineExceeded}
	case status == 0:
		return &Error{Reason: "the model cannot be reached", Retryable: true, Err: rootCause(err)}
	case status < 300:
		return &Error{Reason: "the model's answer broke off or is malformed", Retryable: true}
	case status < 400:
		return &Error{Reason: fmt.Sprintf("the model's server redirects elsewhere (HTTP %d), which is not followed", status)}
	}
	return &Error{
		Reason:    fmt.Sprintf("the model's server answered HTTP %d%s", status, apiCodes(api)),
		Retryable: transientStatus(status) && (api == nil || api.Code != "insufficient_quota"),
	}
}

func transientStatus(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusTooEarly, http.StatusTooManyRequests:
		return true
	}
	return status >= 500
}

// apiCodes gives the codes of an API error, which are words of the protocol.
func apiCodes(api *openai.Error) string {
	if api == nil {
		return ""
	}
	var words []string
	for _, w := range []string{api.Type, api.Code, api.Param} {
		if w != "" && len(w) <= 64 && !strings.ContainsFunc(w, notWord) {
			words = append(words, w)
		}
	}
	if len(words) == 0 {
		return ""
	}
	return " (" + strings.Join(words, ", ") + ")"
}

func notWord(r rune) bool {
	return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("_-.[]", r))
}

// rootCause is the network error below the HTTP client's, without the URL.
func rootCause(err error) error {
	for next := err; next != nil; next = errors.Unwrap(next) {
		err = next
	}
	return err
}

// retryAfter reads how long a server asks to wait: retry-after-ms, or
// Retry-After in seconds or as a date (RFC 9110); 0 where it does not say.
func retryAfter(h http.Header, now time.Time) time.Duration {
	if ms, err := strconv.Atoi(h.Get("Retry-After-Ms")); err == nil && ms > 0 {
		return time.Duration(ms) * time.Millisecond
	}
	after := h.Get("Retry-After")
	if s, err := strconv.Atoi(after); err == nil && s > 0 {
		return time.Duration(min(s, 1<<30)) * time.Second
	}
	if at, err := http.ParseTime(after); err == nil && at.After(now) {
		return at.Sub(now)
	}
	return 0
}
