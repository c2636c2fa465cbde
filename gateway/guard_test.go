package gateway

import (
	"net/http"
	"strings"
	"testing"

	"aob.dev/writ/intents"
	"aob.dev/writ/internal/problem"
)

// Requests that the router's entrance refuses unread are refused here too; every refusal is a
// problem with a type, a code and the trace.
func TestEveryRefusalIsAProblem(t *testing.T) {
	w := newWorld(t, nil)
	for _, c := range []struct {
		method, path, body string
		header             http.Header
		status             int
		code               intents.Code
	}{
		{"GET", "/", "", nil, 404, intents.NotFound},
		{"GET", "/agent/run/", "", nil, 404, intents.NotFound},
		{"GET", "/agent/run", "", nil, 405, intents.NotFound},
		{"POST", "/agent/run", "{}", http.Header{"Content-Encoding": {"gzip"}}, 415, intents.SchemaInvalid},
		{"POST", "/agent/run", "a=b", http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}, 415, intents.SchemaInvalid},
		{"POST", "/agent/run", "{}", http.Header{"X-Large": {strings.Repeat("a", 40<<10)}}, 431, intents.PayloadTooLarge},
		{"POST", "/agent/run", `{"message":"` + strings.Repeat("a", maxBody) + `"}`, nil, 413, intents.PayloadTooLarge},
		{"POST", "/agent/run", "{", nil, 400, intents.SchemaInvalid},
		{"POST", "/agent/run", "", nil, 400, intents.SchemaInvalid},
		{"GET", "/agent/plans/p1", "", http.Header{"X-Api-Key": {"none"}}, 401, intents.Unauthorized},
	} {
		var p problem.Problem
		resp := w.call(c.method, c.path, c.body, c.header, &p)
		if resp.StatusCode != c.status || p.Status != c.status || p.Code != c.code || resp.Header.Get("Content-Type") != problem.ContentType ||
			p.Type != "https://aob.dev/codes/"+string(c.code) || p.TraceID == "" || p.TraceID != resp.Header.Get("X-Trace-Id") {
			t.Errorf("%s %s: %d %+v", c.method, c.path, resp.StatusCode, p)
		}
	}
}
