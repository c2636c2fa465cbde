package gateway

import (
	"net/http"
	"testing"

	"aob.dev/writ/intents"
)

// Everything but the probes of health asks for a key, before anything else
// (SEC-05); no order is sealed for a stranger.
func TestEveryRouteAsksForTheKey(t *testing.T) {
	w := newWorld(t, nil)
	for _, r := range []struct{ method, path string }{
		{"POST", "/agent/run"},
		{"GET", "/agent/plans/plan_1"},
		{"GET", "/agent/plans/plan_1/trace"},
		{"GET", "/agent/plans/plan_1/events"},
		{"DELETE", "/agent/plans/plan_1"},
		{"PUT", "/agent/souls/acme"},
		{"GET", "/agent/memory/query"},
		{"POST", "/agent/memory/query"},
	} {
		for name, header := range map[string]http.Header{"none": {"X-Api-Key": nil}, "wrong": {"X-Api-Key": {"writ_wrong"}}} {
			p := w.refused(r.method, r.path, "{}", header, intents.Unauthorized, "")
			if p.Code != intents.Unauthorized {
				t.Errorf("%s %s with key %s: %s", r.method, r.path, name, p.Code)
			}
		}
	}
	for _, typ := range []string{"plan.open", "plan.get", "cancel", "soul.put", "memory.query"} {
		if n := len(w.ordered(typ)); n != 0 {
			t.Errorf("%d orders %s", n, typ)
		}
	}
}

// By default 100 requests in 900 seconds (BRK-07).
func TestDefaultRate(t *testing.T) {
	w := newWorld(t, nil)
	get := func() answered { return w.call("GET", "/agent/memory/query?query_text=x", "", nil, nil) }
	for i := range 100 {
		if status := get().StatusCode; status != http.StatusOK {
			t.Fatalf("request %d: %d", i+1, status)
		}
	}
	if resp := get(); resp.StatusCode != http.StatusTooManyRequests || resp.Header.Get("Retry-After") != "9" {
		t.Errorf("request 101: %d, Retry-After %q", resp.StatusCode, resp.Header.Get("Retry-After"))
	}
}
