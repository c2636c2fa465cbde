package httpapi_test

import (
	"net/http"
	"strings"
	"testing"

	"aob.dev/writ/intents"
	"aob.dev/writ/internal/problem"
)

// Every refusal is a problem with a type, a code and a trace; if it is about an intent, with its
// intent_id.
func TestEveryRefusalIsAProblem(t *testing.T) {
	e := open(t)
	id := "sha256:" + strings.Repeat("0", 64)
	for _, c := range []struct {
		method, path, body string
		headers            []string
		status             int
		code               intents.Code
	}{
		{http.MethodGet, "/", "", nil, 404, intents.NotFound},
		{http.MethodGet, "/v1/intents/", "", nil, 404, intents.NotFound},
		{http.MethodGet, "/v1/intents/%2e%2e", "", nil, 401, intents.Unauthorized},
		{http.MethodDelete, "/v1/intents", "", nil, 405, intents.NotFound},
		{http.MethodPut, "/v1/batches", "", nil, 405, intents.NotFound},
		{http.MethodPost, "/livez", "", nil, 405, intents.NotFound},
		{"PROPFIND", "/v1/catalog", "", nil, 405, intents.NotFound},
		{http.MethodPost, "/v1/intents", "", nil, 400, intents.SchemaInvalid},
		{http.MethodPost, "/v1/intents", "{", []string{"Content-Encoding", "gzip"}, 415, intents.SchemaInvalid},
		{http.MethodPost, "/v1/batches", "a=b", []string{"Content-Type", "application/x-www-form-urlencoded"}, 415, intents.SchemaInvalid},
		{http.MethodGet, "/v1/catalog", "", []string{"X-Large", strings.Repeat("a", 40<<10)}, 431, intents.PayloadTooLarge},
		{http.MethodGet, "/v1/policy", "", nil, 401, intents.Unauthorized},
		{http.MethodGet, "/v1/approvals", "", nil, 401, intents.Unauthorized},
		{http.MethodGet, "/v1/intents/" + id, "", nil, 401, intents.Unauthorized},
		{http.MethodGet, "/v1/intents/" + id, "", []string{"Authorization", "Bearer x"}, 401, intents.GrantInvalid},
	} {
		w := e.do(c.method, c.path, []byte(c.body), c.headers...)
		p := decoded[problem.Problem](t, w)
		if w.Code != c.status || p.Status != c.status || p.Code != c.code || w.Header().Get("Content-Type") != problem.ContentType ||
			p.Type != "https://aob.dev/codes/"+string(c.code) || p.TraceID == "" || p.TraceID != w.Header().Get("X-Trace-Id") {
			t.Errorf("%s %s: %d %s", c.method, c.path, w.Code, w.Body)
		}
		if strings.HasSuffix(c.path, id) != (p.IntentID == id) {
			t.Errorf("%s: intent_id %q", c.path, p.IntentID)
		}
		if (c.status == 405) != (w.Header().Get("Allow") != "") {
			t.Errorf("%s %s: Allow %q", c.method, c.path, w.Header().Get("Allow"))
		}
	}
}

// TestHintsForSigners: a signer learns what happens to the idempotency key. A gateway, which signs
// for others, does not.
func TestHintsForSigners(t *testing.T) {
	for _, code := range []intents.Code{intents.MalformedArgs, intents.ApprovalExpired, intents.ExpiredTTL} {
		a := &intents.Answer{Code: code, Reason: "x", Hint: code.Info().Hint}
		if p := problem.OfAnswer(a); strings.Contains(p.Hint, "key") || !strings.Contains(p.ForSigner().Hint, "idempotency key") {
			t.Errorf("%+v", p)
		}
		a.Hint = "of its own"
		if p := problem.OfAnswer(a).ForSigner(); p.Hint != a.Hint {
			t.Errorf("%+v", p)
		}
	}
	e := open(t)
	w := e.do(http.MethodPost, "/v1/intents", []byte(`{}`))
	if p := decoded[problem.Problem](t, w); p.Hint != p.Code.Info().SignerHint() {
		t.Errorf("%+v", p)
	}
}

// A client's trace is continued.
func TestTraceIsKept(t *testing.T) {
	e := open(t)
	const trace = "0af7651916cd43dd8448eb211c80319c"
	w := e.do(http.MethodGet, "/v1/nothing", nil, "Traceparent", "00-"+trace+"-b7ad6b7169203331-01")
	if p := decoded[problem.Problem](t, w); p.TraceID != trace {
		t.Errorf("%+v", p)
	}
}
