package httpapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/problem"
	"aob.dev/writ/internal/testing/routertest"
	"aob.dev/writ/router/httpapi"
	"aob.dev/writ/router/recorder"
	"aob.dev/writ/schemas"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/sqlite"
)

// entrance is a router's HTTP interface with its recorder.
type entrance struct {
	*routertest.World
	handler http.Handler
	plain   http.Handler // without the contract, which reads each body before
	docs    storage.Documents
	index   *recorder.Recorder
}

func open(t *testing.T) *entrance {
	t.Helper()
	return openWith(t, routertest.Options{})
}

func openWith(t *testing.T, o routertest.Options) *entrance {
	t.Helper()
	docs, err := sqlite.OpenDocuments(t.Context(), filepath.Join(t.TempDir(), "documents.db"), func(index string, _ []byte, value any) (string, string, bool) {
		s, err := schemas.Storage(index)
		if err != nil {
			return "", "no such index", false
		}
		v := s.Validate(value)
		return "", "not of its schema", len(v) == 0
	}, 0)
	if err != nil {
		t.Fatal(err)
	}
	var rec atomic.Pointer[recorder.Recorder]
	o.Also = func(storage.Entry) {
		if r := rec.Load(); r != nil {
			r.Wake()
		}
	}
	w := routertest.New(t, o)
	r := recorder.New(w.Journal, docs, slog.New(slog.DiscardHandler))
	rec.Store(r)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if err := docs.Close(); err != nil {
			t.Error(err)
		}
	})
	plain := httpapi.New(httpapi.Config{
		Router: w.Router, State: w.Dir, Documents: docs, Recorder: r, Policy: w.Policy, ConsoleAPI: reads{w: w},
		Prices: map[string]catalog.Price{"test:priced": {Input: 2, Cached: 0.5, Output: 8}},
		Now:    w.Clock.Now, Log: slog.New(slog.DiscardHandler),
	})
	return &entrance{w, contract(t).Handler(t, plain), plain, docs, r}
}

// do sends one request; headers come in pairs.
func (e *entrance) do(method, path string, body []byte, headers ...string) *httptest.ResponseRecorder {
	e.Helper()
	req := httptest.NewRequestWithContext(e.Context(), method, path, bytes.NewReader(body))
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	e.handler.ServeHTTP(w, req)
	return w
}

func (e *entrance) post(raw []byte, headers ...string) *httptest.ResponseRecorder {
	e.Helper()
	return e.do(http.MethodPost, "/v1/intents", raw, headers...)
}

// decoded is the body as T.
func decoded[T any](t *testing.T, w *httptest.ResponseRecorder) T {
	t.Helper()
	var v T
	if err := json.Unmarshal(w.Body.Bytes(), &v); err != nil {
		t.Fatalf("%d %s: %v", w.Code, w.Body, err)
	}
	return v
}

// refused checks a problem: status and code.
func refused(t *testing.T, w *httptest.ResponseRecorder, code intents.Code) problem.Problem {
	t.Helper()
	p := decoded[problem.Problem](t, w)
	if w.Code != code.Info().Status || p.Code != code || p.Status != w.Code || w.Header().Get("Content-Type") != problem.ContentType {
		t.Fatalf("%d %s %s, want %s", w.Code, w.Header().Get("Content-Type"), w.Body, code)
	}
	return p
}

func find(e *entrance) routertest.Intent {
	return routertest.Intent{By: e.Planner, Type: "skill.find", Args: catalog.SkillFind{Query: "quakes"}}
}

func TestSubmit(t *testing.T) {
	e := open(t)
	raw, id := e.SignID(find(e))
	w := e.post(raw)
	a := decoded[intents.Answer](t, w)
	if w.Code != http.StatusOK || a.IntentID != id || a.Code != intents.OK || a.Receipt == "" || a.Outcome == nil || a.Replayed {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	again := decoded[intents.Answer](t, e.post(raw))
	if !again.Replayed || again.Receipt != a.Receipt {
		t.Errorf("%+v", again)
	}
}

// Every refusal is a problem with its status, code and pointer, the intent's id and trace, and the
// policy's text.
func TestSubmitRefused(t *testing.T) {
	e := open(t)
	for _, c := range []struct {
		name, pointer string
		code          intents.Code
		change        func(*routertest.Intent)
	}{
		{"schema", "/intent/args/query", intents.SchemaInvalid, func(o *routertest.Intent) { o.Args = struct{}{} }},
		{"type", "/intent/type", intents.UnknownIntent, func(o *routertest.Intent) { o.Type = "no.such" }},
		{"role", "/sig", intents.KeyRole, func(o *routertest.Intent) { o.By = e.Manager }},
		{"key", "/sig", intents.KeyUnknown, func(o *routertest.Intent) { o.By = e.NewKey(intents.RolePlanner) }},
		{"grant", "/actor/grant", intents.GrantInvalid, func(o *routertest.Intent) { o.NoGrant = true }},
		{"expired", "/constraints/ttl_sec", intents.ExpiredTTL, func(o *routertest.Intent) { o.At = routertest.Began.Add(-3600e9) }},
		{"rbac", "/actor", intents.RBACForbidden, func(o *routertest.Intent) { o.Roles = []string{"auditor"} }},
		{"policy", "", intents.PolicyDenied, func(o *routertest.Intent) { o.Type, o.Args = "skill.load", catalog.SkillLoad{Skill: "x"} }},
	} {
		o := find(e)
		c.change(&o)
		raw, id := e.SignID(o)
		p := refused(t, e.post(raw), c.code)
		if p.Pointer != c.pointer || p.IntentID != id || p.TraceID == "" && c.code == intents.PolicyDenied || p.Detail == "" {
			t.Errorf("%s: %+v", c.name, p)
		}
		if (c.code == intents.PolicyDenied) != (len(p.PolicyIDs) > 0) {
			t.Errorf("%s: policy ids %v", c.name, p.PolicyIDs)
		}
	}
	refused(t, e.post([]byte("not an intent")), intents.SchemaInvalid)
	refused(t, e.post(bytes.Repeat([]byte("x"), intents.MaxSize+2)), intents.PayloadTooLarge)
	refused(t, e.post(bytes.Repeat([]byte(" "), intents.MaxSize+1)), intents.PayloadTooLarge)
}

func TestSubmitHeld(t *testing.T) {
	e := open(t)
	e.Pin("pay", catalog.Once)
	e.Approval(`{"once":true}`, "zoe")
	task := e.Begun("p1", "pay").Started(1)
	raw, id := e.SignID(task.CallIntent("pay", `{}`))
	w := e.post(raw)
	a := decoded[intents.Answer](t, w)
	if w.Code != http.StatusAccepted || a.Code != intents.ApprovalRequired || w.Header().Get("Location") != "/v1/intents/"+id {
		t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
	}
}

// An intent in flight is 409 with where and when to ask; with Prefer: wait the answer comes once it
// exists.
func TestSubmitInFlight(t *testing.T) {
	e := open(t)
	began, answer := make(chan struct{}), make(chan struct{})
	e.Bus.On("skill.find", func(context.Context, routertest.Call) intents.Report {
		close(began)
		<-answer
		return routertest.Done(catalog.SkillFindResult{Skills: []catalog.SkillHit{}})
	})
	raw, id := e.SignID(find(e))
	first, waited := make(chan *httptest.ResponseRecorder, 1), make(chan *httptest.ResponseRecorder, 1)
	go func() { first <- e.post(raw) }()
	<-began
	w := e.post(raw)
	p := refused(t, w, intents.InFlight)
	if w.Header().Get("Retry-After") == "" || w.Header().Get("Location") != "/v1/intents/"+id || p.IntentID != id || !p.Retryable {
		t.Errorf("%v %+v", w.Header(), p)
	}
	go func() { waited <- e.post(raw, "Prefer", "respond-async, wait=30") }()
	close(answer)
	a, b := decoded[intents.Answer](t, <-first), decoded[intents.Answer](t, <-waited)
	if a.Code != intents.OK || b.Code != intents.OK || !b.Replayed || a.Receipt != b.Receipt {
		t.Errorf("%+v %+v", a, b)
	}
}

func TestDryRun(t *testing.T) {
	e := open(t)
	before := e.Journal.Next()
	dry := func(o routertest.Intent) *httptest.ResponseRecorder {
		return e.do(http.MethodPost, "/v1/intents?dry_run=true", e.Sign(o))
	}
	o := find(e)
	refused(t, dry(o), intents.RBACForbidden)
	o.Roles = []string{"user", "auditor"}
	if a := decoded[intents.Answer](t, dry(o)); a.Code != intents.OK || a.Position != nil || a.Outcome != nil || a.Decision == nil {
		t.Errorf("%+v", a)
	}
	o.Type, o.Args = "skill.load", catalog.SkillLoad{Skill: "x"}
	refused(t, dry(o), intents.PolicyDenied)
	if e.Journal.Next() != before || len(e.Bus.Calls("skill.find")) != 0 {
		t.Error("a dry run left a trace")
	}
}

// The catalog lists every type with its limits and both schemas.
func TestCatalog(t *testing.T) {
	e := open(t)
	doc := decoded[struct {
		Intents []struct {
			Type       string
			Capability string
			SignedBy   []string        `json:"signed_by"`
			TTLSec     int             `json:"ttl_sec"`
			RunSec     int             `json:"run_sec"`
			Args       json.RawMessage `json:"args_schema"`
			Result     json.RawMessage `json:"result_schema"`
		}
	}](t, e.do(http.MethodGet, "/v1/catalog", nil))
	if len(doc.Intents) != len(catalog.Builtin().Rows()) {
		t.Fatalf("%d types of %d", len(doc.Intents), len(catalog.Builtin().Rows()))
	}
	for i, r := range catalog.Builtin().Rows() {
		if x := doc.Intents[i]; x.Type != r.Type || x.Capability == "" || len(x.SignedBy) == 0 || x.TTLSec == 0 || x.RunSec == 0 || !strings.Contains(string(x.Args), "$schema") || !strings.Contains(string(x.Result), "$schema") {
			t.Errorf("%+v", x)
		}
	}
}

func TestWellKnown(t *testing.T) {
	e := open(t)
	set := decoded[intents.JWKS](t, e.do(http.MethodGet, "/.well-known/jwks.json", nil))
	if set.Origin != e.Origin || set.Version != 1 || len(set.Keys) != 6 {
		t.Errorf("%+v", set)
	}
	if !slices.ContainsFunc(set.Keys, func(k intents.JWK) bool { return k.KID == e.Signer.KID && k.Role == intents.RoleRouter }) {
		t.Error("the router's key is not published")
	}
	for _, path := range []string{"/livez", "/readyz"} {
		if w := e.do(http.MethodGet, path, nil); w.Code != http.StatusOK {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
}

func TestNotReady(t *testing.T) {
	w := routertest.NewEmpty(t, routertest.Options{})
	e := &entrance{World: w, handler: httpapi.New(httpapi.Config{Router: w.Router, State: w.Dir, Policy: w.Policy, Log: slog.New(slog.DiscardHandler)})}
	if got := e.do(http.MethodGet, "/readyz", nil); got.Code != http.StatusServiceUnavailable {
		t.Errorf("readyz %d", got.Code)
	}
	if got := e.do(http.MethodGet, "/livez", nil); got.Code != http.StatusOK {
		t.Errorf("livez %d", got.Code)
	}
	raw := e.Sign(find(e))
	if got := e.post(raw); got.Code != http.StatusTooManyRequests || got.Header().Get("Retry-After") == "" {
		t.Errorf("submit %d %v", got.Code, got.Header())
	}
	if got := e.do(http.MethodPost, "/v1/intents?dry_run=true", raw); got.Code < 400 {
		t.Errorf("dry run %d", got.Code)
	}
}

func TestNoSuchPath(t *testing.T) {
	e := open(t)
	refused(t, e.do(http.MethodGet, "/v1/nothing", nil), intents.NotFound)
	if w := e.do(http.MethodDelete, "/v1/intents", nil); w.Code != http.StatusMethodNotAllowed {
		t.Errorf("DELETE %d", w.Code)
	}
}

// A duplicate is CONFLICT_IDEMPOTENCY for callers that prefer so, with the result of the first; the
// first itself never is.
func TestDuplicateAsConflict(t *testing.T) {
	e := open(t)
	raw, id := e.SignID(find(e))
	ask := []string{"Prefer", "wait=1, Duplicate=Conflict"}
	first := decoded[intents.Answer](t, e.post(raw, ask...))
	if first.Code != intents.OK {
		t.Fatalf("the first: %+v", first)
	}
	w := e.post(raw, ask...)
	p := refused(t, w, intents.ConflictIdempotency)
	if p.IntentID != id || p.Outcome == nil || p.Outcome.Code != intents.OK || p.Receipt != first.Receipt || p.Position == nil || *p.Position != *first.Position ||
		p.Pointer != "/constraints/idempotency_key" || w.Header().Get("Preference-Applied") != "duplicate=conflict" {
		t.Errorf("%+v %v", p, w.Header())
	}
	for _, other := range []string{"", "duplicate", "duplicate=replay", "duplicate=conflictx"} {
		if again := decoded[intents.Answer](t, e.post(raw, "Prefer", other)); !again.Replayed {
			t.Errorf("Prefer: %s: %+v", other, again)
		}
	}
	// An intent without a result is answered as before.
	e.Pin("pay", catalog.Once)
	e.Approval(`{"once":true}`, "zoe")
	held := e.Sign(e.Begun("p1", "pay").Started(1).CallIntent("pay", `{}`))
	e.post(held)
	if w := e.post(held, ask...); w.Code != http.StatusAccepted {
		t.Errorf("held: %d %s", w.Code, w.Body)
	}
}
