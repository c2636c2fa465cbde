package model

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// openaiWire is the transport below the library: it removes the headers by which the library
// describes this machine, bounds the response, and records status and header for [failure], which
// the library drops when an error has no body.
type openaiWire struct {
	next http.RoundTripper
	sent func(body []byte) // or nil
	key  string
}

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
	if err := w.show(req); err != nil {
		return nil, err
	}
	resp, err := w.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if s, ok := req.Context().Value(lastResponseKey{}).(*lastResponse); ok {
		s.resp.Store(resp)
		s.alive()
		resp.Body = living{resp.Body, s.alive}
	}
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.LimitReader(resp.Body, maxResponseBytes), resp.Body} // a truncated body is malformed
	return resp, nil
}

// living is a body that reports each arrival of bytes.
type living struct {
	io.ReadCloser
	alive func()
}

func (b living) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 {
		b.alive()
	}
	return n, err
}

// show passes the body of a request to sent.
func (w openaiWire) show(req *http.Request) error {
	if w.sent == nil || req.GetBody == nil {
		return nil
	}
	body, err := req.GetBody()
	if err != nil {
		return err
	}
	raw, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	if w.key != "" { // somebody may have written it into a message
		raw = bytes.ReplaceAll(raw, []byte(w.key), []byte("[key]"))
	}
	raw = withOutputTools(raw)
	w.sent(raw)
	if show, ok := req.Context().Value(showingKey{}).(func([]byte)); ok {
		show(raw)
	}
	return nil
}

// withOutputTools repeats the tool that takes a structured result as output_tools, where readers look for its schema.
func withOutputTools(body []byte) []byte {
	var request struct {
		Tools []struct {
			Type     string          `json:"type"`
			Function json.RawMessage `json:"function"`
		} `json:"tools"`
	}
	if json.Unmarshal(body, &request) != nil {
		return body
	}
	for _, t := range request.Tools {
		var f struct {
			Name string `json:"name"`
		}
		if json.Unmarshal(t.Function, &f) != nil || f.Name != "final_result" {
			continue
		}
		if raw, err := json.Marshal([]any{t}); err == nil {
			return slices.Concat(body[:bytes.LastIndexByte(body, '}')], []byte(`,"output_tools":`), raw, []byte("}"))
		}
	}
	return body
}

type showingKey struct{}

// Showing returns a context under which the body of each request is also passed to show, if all
// are shown (OpenAIConfig.Sent).
func Showing(ctx context.Context, show func(body []byte)) context.Context {
	return context.WithValue(ctx, showingKey{}, show)
}

// lastResponse is the last response to one attempt.
type lastResponse struct {
	resp  atomic.Pointer[http.Response]
	alive func() // called when something arrives
}

type lastResponseKey struct{}

// attending returns the context of one attempt. It ends, with the cause DeadlineExceeded, when
// nothing has arrived for a time.
func attending(ctx context.Context, idle time.Duration) (context.Context, *lastResponse, context.CancelFunc) {
	ctx, end := context.WithCancelCause(ctx)
	timer := time.AfterFunc(idle, func() { end(context.DeadlineExceeded) })
	s := &lastResponse{alive: func() { timer.Reset(idle) }}
	return context.WithValue(ctx, lastResponseKey{}, s), s, func() { timer.Stop(); end(nil) }
}

// status is 0 until there is a response.
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
