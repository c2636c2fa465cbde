package gateway

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/ratelimit"
)

// free are the routes without a key: they reveal nothing about anybody. /health/deep requires a
// key except on the machine of the node (TestHealthHere).
var free = []string{"/openapi.json", "/livez", "/readyz", "/health", "/health/deep", "/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"}

// Every other route asks for a key, before anything else; no intent is signed for a stranger.
func TestEveryRouteAsksForTheKey(t *testing.T) {
	w, _ := withShelf(t)
	w.gateway.doors = ratelimit.New(1000, time.Hour, callers, w.clock.Now) // one address requests all routes
	engine, ok := any(w.gateway.routes()).(*gin.Engine)
	if !ok {
		t.Fatal("the interface is not gin's")
	}
	path := strings.NewReplacer(":plan_id", "plan_1", ":tenant_id", "acme", ":intent_id", intents.Digest(nil), ":digest", intents.Digest(nil), ":session_id", "s1")
	asked := 0
	for _, r := range engine.Routes() {
		if slices.Contains(free, r.Path) {
			continue
		}
		asked++
		for name, header := range map[string]http.Header{"none": {"X-Api-Key": nil}, "wrong": {"X-Api-Key": {"writ_wrong"}}} {
			if r.Path == routeMCP {
				w.refusedMCP(r.Method, header, intents.Unauthorized)
				continue
			}
			if ofBearers[r.Path] != nil {
				header["Authorization"] = header["X-Api-Key"]
				w.refusedOpenAI(r.Method, r.Path, "{}", header, intents.Unauthorized, nil)
				continue
			}
			p := w.refused(r.Method, path.Replace(r.Path), "{}", header, intents.Unauthorized, "")
			if p.Code != intents.Unauthorized {
				t.Errorf("%s %s with key %s: %s", r.Method, r.Path, name, p.Code)
			}
		}
	}
	if asked < 10 {
		t.Errorf("only %d routes ask for a key", asked)
	}
	for _, row := range catalog.Builtin().Rows() {
		if n := len(w.submits(row.Type)); n != 0 {
			t.Errorf("%d intents %s", n, row.Type)
		}
	}
}

// By default 100 requests in 900 seconds.
func TestDefaultRate(t *testing.T) {
	w := newWorld(t, nil)
	post := func() answered { return w.call("POST", "/agent/memory/query", `{"query_text":"x"}`, nil, nil) }
	for i := range 100 {
		if status := post().StatusCode; status != http.StatusOK {
			t.Fatalf("request %d: %d", i+1, status)
		}
	}
	if resp := post(); resp.StatusCode != http.StatusTooManyRequests || resp.Header.Get("Retry-After") != "9" {
		t.Errorf("request 101: %d, Retry-After %q", resp.StatusCode, resp.Header.Get("Retry-After"))
	}
}

// TestReadRate: polling has a rate of its own, so the client can still act; that rate is bounded,
// too.
func TestReadRate(t *testing.T) {
	w := newWorld(t, nil)
	w.gateway.limit = newRates(1, time.Hour, w.clock.Now)
	get := func() answered { return w.call("GET", "/agent/memory/query?query_text=x", "", nil, nil) }
	for i := range ReadRate {
		if status := get().StatusCode; status != http.StatusOK {
			t.Fatalf("read %d: %d", i+1, status)
		}
	}
	if resp := get(); resp.StatusCode != http.StatusTooManyRequests || resp.Header.Get("Retry-After") != "1" {
		t.Errorf("read %d: %d, Retry-After %q", ReadRate+1, resp.StatusCode, resp.Header.Get("Retry-After"))
	}
	if resp := w.call("POST", "/agent/memory/query", `{"query_text":"x"}`, nil, nil); resp.StatusCode != http.StatusOK {
		t.Errorf("whoever has read too much acts: %d", resp.StatusCode)
	}
	w.clock.advance(time.Second)
	if status := get().StatusCode; status != http.StatusOK {
		t.Errorf("%d after the wait", status)
	}
}
