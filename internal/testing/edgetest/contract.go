// Package edgetest checks an HTTP interface against the OpenAPI document, in tests. It runs
// between client and handler. It fails the test on every answer that does not conform to
// the document, and on every success of a request that the document forbids.
package edgetest

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"

	"aob.dev/writ/internal/problem"
	"aob.dev/writ/schemas"
)

// Contract is the document.
type Contract struct {
	doc    *openapi3.T
	routes routers.Router
}

// Load reads the document and lints it.
func Load(t testing.TB) *Contract {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromData(schemas.OpenAPI())
	if err != nil {
		t.Fatal(err)
	}
	if err := doc.Validate(context.Background()); err != nil {
		t.Fatalf("openapi.json: %v", err)
	}
	routes, err := gorillamux.NewRouter(doc)
	if err != nil {
		t.Fatal(err)
	}
	return &Contract{doc, routes}
}

// Routes of the operations with a tag, sorted: "GET /v1/intents/{id}".
func (c *Contract) Routes(tag string) []string {
	var out []string
	for path, item := range c.doc.Paths.Map() {
		for method, op := range item.Operations() {
			if slices.Contains(op.Tags, tag) {
				out = append(out, method+" "+path)
			}
		}
	}
	slices.Sort(out)
	return out
}

// Documented writes a route of gin as the document does.
func Documented(method, path string) string {
	parts := strings.Split(path, "/")
	for i, p := range parts {
		if p != "" && (p[0] == ':' || p[0] == '*') {
			parts[i] = "{" + p[1:] + "}"
		}
	}
	return method + " " + strings.Join(parts, "/")
}

// Handler checks every request and answer of h against the document.
func (c *Contract) Handler(t testing.TB, h http.Handler) http.Handler {
	t.Helper()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("%s %s: %v", r.Method, r.URL.Path, err)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		asked := r.Clone(context.WithoutCancel(r.Context()))
		asked.Body = io.NopCloser(bytes.NewReader(body))
		told := &recorder{ResponseWriter: w, status: http.StatusOK}
		h.ServeHTTP(told, r)
		if r.Context().Err() == nil {
			c.check(t, asked, told)
		}
	})
}

func (c *Contract) check(t testing.TB, r *http.Request, w *recorder) {
	t.Helper()
	where := r.Method + " " + r.URL.Path
	route, params, err := c.routes.FindRoute(r)
	form := problem.ContentType
	if err == nil && route.Operation.Responses.Default() != nil && route.Operation.Responses.Default().Value.Content[form] == nil {
		form = "application/json" // the document gives this route a form of its own
	}
	if w.status >= http.StatusBadRequest && w.Header().Get("Content-Type") != form && r.URL.Path != "/readyz" {
		t.Errorf("%s: %d is no problem but %q: %s", where, w.status, w.Header().Get("Content-Type"), w.body.Bytes())
		return
	}
	if err != nil {
		var p problem.Problem
		if !strings.HasPrefix(r.URL.Path, "/ledger/") && (json.Unmarshal(w.body.Bytes(), &p) != nil || p.Status != w.status || p.TraceID == "") {
			t.Errorf("%s is not in the document, and answered %d %s", where, w.status, w.body.Bytes())
		}
		return
	}
	options := &openapi3filter.Options{AuthenticationFunc: openapi3filter.NoopAuthenticationFunc, IncludeResponseStatus: true, MultiError: true}
	in := &openapi3filter.RequestValidationInput{Request: r, PathParams: params, Route: route, Options: options}
	if w.status < http.StatusBadRequest {
		if r.ContentLength != 0 && r.Header.Get("Content-Type") == "" {
			r.Header.Set("Content-Type", "application/json")
		}
		if err := openapi3filter.ValidateRequest(r.Context(), in); err != nil {
			t.Errorf("%s was answered %d, and is none of the document: %v", where, w.status, err)
		}
	}
	if strings.HasPrefix(w.Header().Get("Content-Type"), "text/event-stream") || r.Method == http.MethodHead || w.status == http.StatusNotModified {
		return
	}
	out := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: in, Status: w.status, Header: w.Header(), Body: io.NopCloser(&w.body), Options: options,
	}
	if err := openapi3filter.ValidateResponse(r.Context(), out); err != nil {
		t.Errorf("%s: the answer %d is none of the document: %v", where, w.status, err)
	}
}

// recorder records the answer that it passes on.
type recorder struct {
	http.ResponseWriter
	status int
	body   bytes.Buffer
}

func (w *recorder) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

func (w *recorder) Write(b []byte) (int, error) {
	w.body.Write(b)
	return w.ResponseWriter.Write(b)
}

// Flush and Unwrap let streams through.
func (w *recorder) Flush() { _ = http.NewResponseController(w.ResponseWriter).Flush() }

// Unwrap is for http.ResponseController.
func (w *recorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }
