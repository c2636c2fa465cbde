package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/internal/problem"
	"aob.dev/writ/schemas"
)

// serve answers everything with one handler and gives a client for it.
func serve(t *testing.T, h http.HandlerFunc) Client {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return Client{URL: s.URL, Key: "key"}
}

// stream answers with a plan's frames.
func stream(frames ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		w.Header().Set("X-Plan-Id", "plan_1")
		for _, kind := range frames {
			fmt.Fprintf(w, "event: %s\ndata: {\"kind\":%q,\"data\":{}}\n\n", kind, kind)
		}
	}
}

// run asks and gives the kinds of the frames.
func run(t *testing.T, c Client) (plan string, kinds []string, err error) {
	t.Helper()
	plan, err = c.Run(t.Context(), "how many?", func(f Frame) error {
		kinds = append(kinds, f.Event)
		return nil
	})
	return plan, kinds, err
}

func TestRun(t *testing.T) {
	var asked struct {
		Message string `json:"message"`
		Stream  bool   `json:"stream"`
	}
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || r.URL.Path != "/agent/run" || r.Header.Get("X-Api-Key") != "key" {
			t.Errorf("%s %s with key %q", r.Method, r.URL.Path, r.Header.Get("X-Api-Key"))
		}
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
			t.Error(err)
		}
		stream("status", "answer", "done")(w, r)
	})
	plan, kinds, err := run(t, c)
	if err != nil || plan != "plan_1" {
		t.Fatalf("plan %q, error %v", plan, err)
	}
	if d := cmp.Diff([]string{"status", "answer", "done"}, kinds); d != "" {
		t.Errorf("frames (-want +got):\n%s", d)
	}
	if asked.Message != "how many?" || !asked.Stream {
		t.Errorf("asked %+v", asked)
	}
}

// TestRunHeld: a plan that waits for people from the beginning has no stream.
func TestRunHeld(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("X-Plan-Id", "plan_1")
		w.WriteHeader(http.StatusAccepted)
		_, _ = io.WriteString(w, `{"status":"held"}`)
	})
	if plan, kinds, err := run(t, c); err != nil || plan != "plan_1" || len(kinds) != 1 || kinds[0] != "held" {
		t.Errorf("plan %q, frames %v, error %v", plan, kinds, err)
	}
	if _, _, err := run(t, serve(t, stream("status", "held"))); err != nil {
		t.Errorf("a stream that ends with held: %v", err)
	}
}

// TestRunCut: who lost the connection is told so, and which plan goes on.
func TestRunCut(t *testing.T) {
	plan, _, err := run(t, serve(t, stream("status", "answer")))
	if !errors.Is(err, ErrCut) || plan != "plan_1" {
		t.Errorf("a stream without done: plan %q, error %v", plan, err)
	}
	plan, kinds, err := run(t, serve(t, func(w http.ResponseWriter, r *http.Request) {
		stream("status")(w, r)
		_ = http.NewResponseController(w).Flush() // the client sees a failure too
		panic(http.ErrAbortHandler)
	}))
	if !errors.Is(err, ErrCut) || plan != "plan_1" || len(kinds) != 1 {
		t.Errorf("a connection that broke: plan %q, frames %v, error %v", plan, kinds, err)
	}
}

func TestProblem(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, `{"type":"https://aob.dev/codes/POLICY_DENIED","title":"t","status":403,"code":"POLICY_DENIED","pointer":"/intent/args/n",
			"detail":"no","hint":"ask","retryable":true,"intent_id":"sha256:1","trace_id":"2","policy_ids":["a.b"],"violations":[{"pointer":"/x","reason":"r"}]}`)
	})
	want := &Error{problem.Problem{
		Type: "https://aob.dev/codes/POLICY_DENIED", Title: "t",
		Status: 403, Code: "POLICY_DENIED", Detail: "no", Hint: "ask", Pointer: "/intent/args/n", Retryable: true, IntentID: "sha256:1", TraceID: "2",
		PolicyIDs: []string{"a.b"}, Violations: []schemas.Violation{{Pointer: "/x", Reason: "r"}},
	}}
	var got *Error
	for name, call := range map[string]func() error{
		"run":    func() error { _, _, err := run(t, c); return err },
		"get":    func() error { return c.Get(t.Context(), "/x", new(any)) },
		"submit": func() error { _, _, err := c.Submit(t.Context(), []byte("{}"), ""); return err },
	} {
		if err := call(); !errors.As(err, &got) {
			t.Errorf("%s: error = %v", name, err)
		} else if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
	if s := got.Error(); s != "POLICY_DENIED: no (at /intent/args/n); ask" {
		t.Errorf("for people: %s", s)
	}
}

// TestForeignProblem: what a proxy says is no problem of ours, and still told.
func TestForeignProblem(t *testing.T) {
	for _, body := range []string{"<html>", "", `{"error":"x"}`, `{"code":7}`, `{"code":"","detail":"x","status":1}`} {
		c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadGateway)
			_, _ = io.WriteString(w, body)
		})
		err := c.Get(t.Context(), "/x", new(any))
		var got *Error
		if !errors.As(err, &got) || got.Status != 502 || got.Code != "502 Bad Gateway" || got.Detail != "" || err.Error() != "502 Bad Gateway" {
			t.Errorf("%q: error = %v", body, err)
		}
	}
}

func TestSubmit(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || string(body) != "signed" || r.URL.String() != "/v1/intents?dry_run=true" {
			t.Errorf("%s with %q", r.URL, body)
		}
		w.WriteHeader(http.StatusAccepted)
		_, _ = io.WriteString(w, "as it is")
	})
	status, body, err := c.Submit(t.Context(), []byte("signed"), "?dry_run=true")
	if err != nil || status != http.StatusAccepted || string(body) != "as it is" {
		t.Errorf("%d %q, error %v", status, body, err)
	}
}

// TestRefused: nobody listens. The text names the address and the cause.
func TestRefused(t *testing.T) {
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	url := "http://" + l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	err = Client{URL: url}.Get(t.Context(), "/agent/plans/x", new(any))
	if !errors.Is(err, syscall.ECONNREFUSED) || !strings.HasPrefix(err.Error(), "no answer from "+url+": ") || !strings.Contains(err.Error(), "refused") {
		t.Errorf("error = %v", err)
	}
}
