package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/mark3labs/mcp-go/server"
)

func wantKind(t *testing.T, err, kind error, words ...string) *Error {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) || !errors.Is(err, kind) {
		t.Fatalf("got %v, want %v", err, kind)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("the error %q does not say %q", err, w)
		}
	}
	if strings.ContainsFunc(err.Error(), func(r rune) bool { return r < ' ' || r == 0x7f }) {
		t.Errorf("the error %q holds control characters", err)
	}
	return e
}

func TestCall(t *testing.T) {
	for peer, src := range peers(t) {
		t.Run(peer, func(t *testing.T) {
			c := dial(t, src, quick())
			want := map[string]string{"http": "2026-07-28", "stdio": "2026-07-28", "legacy": "2025-11-25"}[peer]
			if got := c.conn.rpc.ProtocolVersion(); got != want {
				t.Errorf("protocol %s, want %s", got, want)
			}
			res, err := c.Call(t.Context(), "echo", json.RawMessage(`{"n":9007199254740993}`),
				CallMeta{IntentID: "sha256:ab", Principal: "ana", AllowedSkills: []string{"echo"}})
			if err != nil {
				t.Fatal(err)
			}
			var seen struct {
				Input json.RawMessage
				Key   string
				Meta  map[string]any
			}
			if err := json.Unmarshal(res.Data, &seen); err != nil || !res.IsJSON {
				t.Fatal(err, res.IsJSON)
			}
			if string(seen.Input) != `{"n":9007199254740993}` {
				t.Errorf("the server got %s", seen.Input)
			}
			if peer != "stdio" && seen.Key != "sha256:ab" {
				t.Errorf("Idempotency-Key %q", seen.Key)
			}
			meta := map[string]any{"aob.dev/intent_id": "sha256:ab", "aob.dev/principal": "ana", "aob.dev/allowed_skills": []any{"echo"}}
			if d := cmp.Diff(meta, seen.Meta); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestCallResults(t *testing.T) {
	type want struct {
		data, text string
		isJSON     bool
	}
	tests := map[string]want{
		"pair":    {`{"n":1}`, "one", true},
		"textual": {` {"n":2}`, ` {"n":2}`, true},
		"lines":   {"a\nb\n\tc & <d>", "a\nb\n\tc & <d>", false},
	}
	for peer, src := range peers(t) {
		c := dial(t, src, quick())
		for name, w := range tests {
			res, err := c.Call(t.Context(), name, nil, CallMeta{})
			if err != nil {
				t.Errorf("%s %s: %v", peer, name, err)
				continue
			}
			if got := (want{string(res.Data), res.Text, res.IsJSON}); got != w {
				t.Errorf("%s %s: got %+v, want %+v", peer, name, got, w)
			}
		}
	}
}

func TestServerSchemaViolation(t *testing.T) {
	for peer, src := range peers(t) {
		t.Run(peer, func(t *testing.T) {
			c := dial(t, src, quick())
			for name, odd := range map[string]string{"liar": "/n: must be integer", "mute": "no structured content", "corrupt": "no base64"} {
				for _, again := range []bool{false, true} {
					res, err := c.Call(t.Context(), name, nil, CallMeta{RetrySafe: again})
					if err != nil || len(res.Odd) != 1 || !strings.Contains(res.Odd[0], odd) {
						t.Errorf("%s: %+v, error %v", name, res, err)
					}
				}
			}
		})
	}
}

func TestToolFailure(t *testing.T) {
	for peer, src := range peers(t) {
		t.Run(peer, func(t *testing.T) {
			c := dial(t, src, quick())
			res, err := c.Call(t.Context(), "broken", nil, CallMeta{RetrySafe: true})
			wantKind(t, err, ErrTool, "no such outlet")
			if res == nil || !res.IsError {
				t.Errorf("got result %v, want the tool's own", res)
			}
			_, err = c.Call(t.Context(), "nowhere", nil, CallMeta{})
			if e := wantKind(t, err, ErrTool, "no such tool"); !e.Undelivered {
				t.Error("a tool that does not exist was called")
			}
			_, err = c.Call(t.Context(), "echo", json.RawMessage(`[1]`), CallMeta{})
			wantKind(t, err, ErrSchema, "not a JSON object")
		})
	}
}

func TestOversizedResponse(t *testing.T) {
	sources := peers(t)
	sources["sse"] = serve(t, asStream(streamable(testServer())))
	for peer, src := range sources {
		t.Run(peer, func(t *testing.T) {
			opt := quick()
			opt.MaxBytes = 50_000
			c := dial(t, src, opt)
			_, err := c.Call(t.Context(), "large", nil, CallMeta{RetrySafe: true})
			wantKind(t, err, ErrTooLarge, "50000 bytes")
			if _, err := c.Call(t.Context(), "pair", nil, CallMeta{}); err != nil {
				t.Errorf("the next call: %v", err)
			}
		})
	}
}

// asStream sends every JSON answer as an event stream, as many servers do.
func asStream(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rec := &recorder{header: http.Header{}, status: 200}
		next.ServeHTTP(rec, r)
		if rec.header.Get("Content-Type") == "application/json" && rec.status == 200 {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = w.Write([]byte("event: message\ndata: " + strings.TrimSpace(string(rec.body)) + "\n\n"))
			return
		}
		w.WriteHeader(rec.status)
		_, _ = w.Write(rec.body)
	})
}

type recorder struct {
	header http.Header
	status int
	body   []byte
}

func (r *recorder) Header() http.Header { return r.header }
func (r *recorder) WriteHeader(s int)   { r.status = s }
func (r *recorder) Write(p []byte) (int, error) {
	r.body = append(r.body, p...)
	return len(p), nil
}

func TestSlowServer(t *testing.T) {
	for peer, src := range peers(t) {
		t.Run(peer, func(t *testing.T) {
			opt := quick()
			c := dial(t, src, opt)
			if _, err := c.Manifests(t.Context()); err != nil {
				t.Fatal(err)
			}
			c.opt.Timeout = 20 * time.Millisecond
			_, err := c.Call(t.Context(), "slow", nil, CallMeta{})
			e := wantKind(t, err, ErrUnavailable, "no answer in time")
			if !e.Retryable() || e.Undelivered || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %+v", e)
			}
			c.opt.Timeout = time.Minute
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			defer cancel()
			_, err = c.Call(ctx, "slow", nil, CallMeta{RetrySafe: true})
			wantKind(t, err, ErrUnavailable)
			if _, err := c.Call(t.Context(), "pair", nil, CallMeta{}); err != nil {
				t.Errorf("the next call: %v", err)
			}
		})
	}
}

// flaky answers tools/call with status until left is 0.
func flaky(next http.Handler, status int, left *atomic.Int64) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Mcp-Method") == "tools/call" && left.Add(-1) >= 0 {
			http.Error(w, "try later", status)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func TestRetries(t *testing.T) {
	tests := []struct {
		name     string
		status   int
		failures int64
		safe     bool
		kind     error
		left     int64 // of the failures
	}{
		{"three failures, safe", 503, 3, true, nil, -1},
		{"four failures, safe", 503, 4, true, ErrUnavailable, 0},
		{"three rate limits, not safe", 429, 3, false, nil, -1},
		{"one failure, not safe", 503, 1, false, ErrUnavailable, 0},
		{"rate limit, safe", 429, 1, true, nil, -1},
		{"forbidden is final", 403, 9, true, ErrRefused, 8},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var left atomic.Int64
			left.Store(tt.failures)
			c := dial(t, serve(t, flaky(streamable(testServer()), tt.status, &left)), quick())
			_, err := c.Call(t.Context(), "pair", nil, CallMeta{RetrySafe: tt.safe})
			if tt.kind == nil && err != nil {
				t.Fatal(err)
			}
			if tt.kind != nil {
				wantKind(t, err, tt.kind)
			}
			if got := left.Load(); got != tt.left {
				t.Errorf("%d failures left, want %d", got, tt.left)
			}
		})
	}
}

func TestServerDown(t *testing.T) {
	s := newSite(t, streamable(testServer()))
	s.down()
	_, err := Dial(t.Context(), s.source(), s.options())
	if e := wantKind(t, err, ErrUnavailable); !e.Undelivered {
		t.Error("nothing can have been delivered")
	}
	_, err = Dial(t.Context(), Source{Command: []string{"writ-no-such-command"}}, quick())
	wantKind(t, err, ErrUnavailable, "writ-no-such-command")
	opt := quick()
	_, err = Dial(t.Context(), self(t, stdioServer+"=silent"), opt)
	wantKind(t, err, ErrUnavailable, "run its command by itself")
}

func TestServerRestartedBetweenCalls(t *testing.T) {
	handlers := map[string]func() http.Handler{
		"http":   func() http.Handler { return streamable(testServer()) },
		"legacy": func() http.Handler { return legacyOnly(streamable(testServer(), server.WithStateful(true))) },
	}
	for peer, h := range handlers {
		t.Run(peer, func(t *testing.T) {
			s := newSite(t, h())
			c := dial(t, s.source(), s.options())
			call := func() error {
				_, err := c.Call(t.Context(), "pair", nil, CallMeta{})
				return err
			}
			if err := call(); err != nil {
				t.Fatal(err)
			}
			s.down()
			if e := wantKind(t, call(), ErrUnavailable); !e.Retryable() {
				t.Error("a server that is down is retryable")
			}
			s.up(h())
			if err := call(); err != nil {
				t.Errorf("after the restart: %v", err)
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	status := func(code int) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "http://127.0.0.1:1/elsewhere")
			http.Error(w, "no\x1b[31m", code)
		})
	}
	for code, words := range map[int]string{401: "credentials", 403: "refuses these credentials (HTTP 403)", 404: "no MCP server", 307: "redirects"} {
		_, err := Dial(t.Context(), serve(t, status(code)), quick())
		wantKind(t, err, ErrRefused, words)
	}
	_, err := Dial(t.Context(), serve(t, status(502)), quick())
	wantKind(t, err, ErrUnavailable, "502")
}

func TestHeaders(t *testing.T) {
	opt := quick()
	opt.Header = http.Header{"Authorization": {"Bearer client"}}
	c := dial(t, serve(t, streamable(testServer())), opt)
	res, err := c.Call(t.Context(), "echo", nil, CallMeta{})
	if err != nil {
		t.Fatal(err)
	}
	var seen struct{ Auth string }
	if err := json.Unmarshal(res.Data, &seen); err != nil || seen.Auth != "Bearer client" {
		t.Errorf("Authorization %q", seen.Auth)
	}
}

func TestCloseEndsCallsInFlight(t *testing.T) {
	for peer, src := range peers(t) {
		t.Run(peer, func(t *testing.T) {
			c := dial(t, src, quick())
			if _, err := c.Manifests(t.Context()); err != nil {
				t.Fatal(err)
			}
			failed := make(chan error, 1)
			go func() {
				_, err := c.Call(t.Context(), "slow", nil, CallMeta{})
				failed <- err
			}()
			if err := c.Close(); err != nil {
				t.Fatal(err)
			}
			wantKind(t, <-failed, ErrUnavailable)
			_, err := c.Call(t.Context(), "pair", nil, CallMeta{})
			wantKind(t, err, ErrUnavailable, "closed")
		})
	}
}
