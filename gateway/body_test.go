package gateway

import (
	"net/http"
	"strings"
	"testing"

	"aob.dev/writ/intents"
)

// The refusal of a body names the member and its error, and does not mention signing: nobody
// signed it.
func TestBodyNamesMember(t *testing.T) {
	w := newWorld(t, nil)
	for _, row := range []struct{ path, method, body, pointer, detail string }{
		{"/agent/run", "POST", `{"message":"x","steam":true}`, "/steam", "unknown member; the members here are agent, message, session_id, stream, tenant_id, user_id"},
		{"/agent/run", "POST", `{"message":7}`, "/message", "must be a JSON string"},
		{"/agent/run", "POST", `{"message":"x","message":"y"}`, "/message", "strict JSON"},
		{"/agent/run", "POST", `{"message":`, "", "strict JSON"},
		{"/agent/run", "POST", `{"message":"x","a/b~":1}`, "/a~1b~0", "unknown member"},
		{"/agent/run", "POST", `{"message":"x","` + strings.Repeat("n", 900) + `":1}`, "/" + strings.Repeat("n", maxMember-len("…")) + "…", "unknown member"},
		{"/agent/run", "POST", `{"message":"x","Stream":true}`, "/Stream", "unknown member"},
		{"/agent/souls/acme", "PUT", `{"persona":{"name":"n","system_promt":"s"}}`, "/persona/system_promt", "unknown member; the members here are language, name, system_prompt, tone"},
		{"/v1/grants", "POST", `{"user":"ana"}`, "/user", "unknown member; the members here are session_id, tenant_id, user_id"},
	} {
		p := w.refused(row.method, row.path, row.body, nil, intents.SchemaInvalid, row.pointer)
		if !strings.Contains(p.Detail, row.detail) {
			t.Errorf("%s: %q, want %q", row.body, p.Detail, row.detail)
		}
		if said := p.Detail + p.Hint; strings.Contains(said, "sign") {
			t.Errorf("%s: nobody signed it: %q", row.body, said)
		}
	}
}

// A client that accepts events receives them, even without a member in the body.
func TestAcceptStreams(t *testing.T) {
	for accept, want := range map[string]string{
		"text/event-stream":                        "text/event-stream",
		"text/event-stream, application/json;q=.5": "text/event-stream",
		"application/json":                         "application/json; charset=utf-8",
		"*/*":                                      "application/json; charset=utf-8",
		"":                                         "application/json; charset=utf-8",
	} {
		var w *world
		w = newWorld(t, completing(&w))
		resp := w.do(t.Context(), "POST", "/agent/run", runBody(""), http.Header{"Accept": {accept}})
		if got := resp.Header.Get("Content-Type"); got != want {
			t.Errorf("Accept %q: %q, want %q", accept, got, want)
		}
		_ = resp.Body.Close()
	}
}
