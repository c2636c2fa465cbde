package mcp

import (
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"aob.dev/writ/internal/egress"
)

// TestNothingSent: a call that must not run twice is sent again where it was certainly not
// taken, and nowhere else.
func TestNothingSent(t *testing.T) {
	site := func(fail func(w http.ResponseWriter, n int64)) (Source, *atomic.Int64) {
		var calls atomic.Int64
		next := streamable(testServer())
		return serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Mcp-Method") == "tools/call" {
				if n := calls.Add(1); n < 3 {
					fail(w, n)
					return
				}
			}
			next.ServeHTTP(w, r)
		})), &calls
	}
	status := func(code int, header ...string) func(http.ResponseWriter, int64) {
		return func(w http.ResponseWriter, _ int64) {
			for i := 0; i < len(header); i += 2 {
				w.Header().Set(header[i], header[i+1])
			}
			http.Error(w, "later", code)
		}
	}
	cut := func(w http.ResponseWriter, _ int64) {
		c, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		c.Close()
	}
	for name, tt := range map[string]struct {
		fail        func(http.ResponseWriter, int64)
		retries     int
		calls       int64
		done        bool
		undelivered bool
	}{
		"too many requests":          {status(429), 0, 3, true, false},
		"429 and a wait":             {status(429, "Retry-After-Ms", "1"), 0, 3, true, false},
		"429 and an hour":            {status(429, "Retry-After", "3600"), 0, 1, false, true},
		"429 and no retries":         {status(429), -1, 1, false, true},
		"429 and one retry":          {status(429), 1, 2, false, true},
		"unavailable, says when":     {status(503, "Retry-After-Ms", "1"), 0, 3, true, false},
		"unavailable, says not when": {status(503), 0, 1, false, false},
		"broken":                     {status(500, "Retry-After-Ms", "1"), 0, 1, false, false},
		"cut off":                    {cut, 0, 1, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			src, calls := site(tt.fail)
			opt := quick()
			opt.Retries = tt.retries
			_, err := dial(t, src, opt).Call(t.Context(), "pair", nil, CallMeta{})
			if (err == nil) != tt.done || calls.Load() != tt.calls {
				t.Errorf("%d calls, %v", calls.Load(), err)
			}
			if err != nil {
				if e := wantKind(t, err, ErrUnavailable); e.Undelivered != tt.undelivered {
					t.Errorf("undelivered: %t", e.Undelivered)
				}
			}
		})
	}
}

// TestNoConnection: no name, nobody there and no TLS are tried again, the default number of
// times, whatever the call does.
func TestNoConnection(t *testing.T) {
	secure := httptest.NewUnstartedServer(streamable(testServer()))
	secure.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	secure.StartTLS()
	defer secure.Close()
	for name, url := range map[string]string{"no TLS": secure.URL + "/mcp", "nobody there": "http://127.0.0.1:1/mcp", "no name": "http://writ.invalid/mcp"} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, streamable(testServer()))
			opt := s.options()
			var broken atomic.Bool
			var tries atomic.Int64
			bad := egress.Transport(url)
			good := opt.RoundTripper
			opt.RoundTripper = transportFunc(func(r *http.Request) (*http.Response, error) {
				if !broken.Load() {
					return good.RoundTrip(r)
				}
				if r.Header.Get("Mcp-Method") == "tools/call" {
					tries.Add(1)
				}
				to := r.Clone(r.Context())
				var err error
				if to.URL, err = to.URL.Parse(url); err != nil {
					return nil, err
				}
				return bad.RoundTrip(to)
			})
			c := dial(t, s.source(), opt)
			if _, err := c.Call(t.Context(), "pair", nil, CallMeta{}); err != nil {
				t.Fatal(err)
			}
			broken.Store(true)
			_, err := c.Call(t.Context(), "pair", nil, CallMeta{})
			if e := wantKind(t, err, ErrUnavailable); !e.Undelivered {
				t.Error("nothing can have been delivered")
			}
			if tries.Load() == 0 {
				t.Error("the call was not tried")
			}
			broken.Store(false)
			if _, err := c.Call(t.Context(), "pair", nil, CallMeta{}); err != nil {
				t.Errorf("the next call: %v", err)
			}
		})
	}
}

type transportFunc func(*http.Request) (*http.Response, error)

func (f transportFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestStranger: a server that no operator named is not dialled in a private network, and
// the error says so once, with what to do.
func TestStranger(t *testing.T) {
	var asked atomic.Int64
	src := serve(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	opt := quick()
	opt.RoundTripper = egress.Transport()
	_, err := Dial(t.Context(), src, opt)
	e := wantKind(t, err, ErrRefused, "this machine", "agent_hosts")
	var refused *egress.RefusedError
	if !e.Undelivered || !e.Barred || e.Retryable() || errors.As(e.Err, &refused) || asked.Load() > 0 {
		t.Errorf("%+v after %d requests", e, asked.Load())
	}
	opt.RoundTripper = egress.Transport(src.URL)
	if _, err := Dial(t.Context(), src, opt); errors.Is(err, ErrRefused) && asked.Load() == 0 {
		t.Errorf("a server that was named: %v", err)
	}
}
