package gateway

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/gateway/readapi"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

// Each query is one intent or one read for the user of the key.
func TestQuery(t *testing.T) {
	w := newWorld(t, nil)
	for _, c := range []struct{ body, typ, args string }{
		{`{"mode":"LOOKUP","query":"acme:s:t:l"}`, "memory.query", `{"mode":"LOOKUP","text":"acme:s:t:l"}`},
		{`{"mode":"traverse","query":"s:trip"}`, "memory.query", `{"mode":"TRAVERSE","text":"s:trip"}`},
		{`{"mode":"SQL","query":"SELECT 1"}`, "memory.query", `{"mode":"SQL","text":"SELECT 1"}`},
		{`{"mode":"search","query":"open outlets","limit":3}`, "memory.query", `{"mode":"SEARCH","text":"open outlets","top_k":3}`},
		{`{"mode":"FUZZY","query":"open outlets"}`, "memory.query", `{"mode":"FUZZY","text":"open outlets"}`},
		{`{"mode":"SQL","query":"usage","since":"2026-11-20T00:00:00Z","until":"2026-11-21T00:00:00Z","by_day":true,"whole_tenant":true}`, readapi.Usage, "by_day=true&since=2026-11-20T00%3A00%3A00Z&until=2026-11-21T00%3A00%3A00Z&whole_tenant=true"},
		{`{"mode":"sql","query":"messages","limit":5,"after":"c"}`, readapi.Messages, "after=c&limit=5"},
	} {
		if strings.HasPrefix(c.typ, readapi.Path) {
			resp := w.call("POST", "/query/", c.body, nil, nil)
			if asked := w.asked(c.typ); resp.StatusCode != http.StatusOK || len(asked) != 1 || asked[0] != c.typ+"?"+c.args {
				t.Errorf("%s: %d, %v", c.body, resp.StatusCode, asked)
			}
			continue
		}
		before := len(w.submits(c.typ))
		resp := w.call("POST", "/query/", c.body, nil, nil)
		signed := w.submits(c.typ)
		if resp.StatusCode != http.StatusOK || len(signed) != before+1 {
			t.Errorf("%s: %d, %d intents", c.body, resp.StatusCode, len(signed)-before)
			continue
		}
		if e := signed[before]; string(e.Args()) != c.args || e.Principal().UserID != "ana" || e.Principal().Tenant != "acme" {
			t.Errorf("%s: %s for %+v", c.body, e.Args(), e.Principal())
		}
	}
	var memory catalog.MemoryQueryResult
	w.call("POST", "/query/", `{"mode":"LOOKUP","query":"acme:s:t:l"}`, nil, &memory)
	if memory.ReadMemoryResult == nil || memory.Key != "acme:s:t:l" || string(memory.Data) != `{"open":3}` {
		t.Errorf("%+v", memory)
	}
	var usage catalog.PlanUsageResult
	w.call("POST", "/query/", `{"mode":"SQL","query":"usage"}`, http.Header{"X-Api-Key": {appKey}, "X-User-Id": {"carl"}}, &usage)
	if d := cmp.Diff([]catalog.UsageRow{{Agent: "carl", Model: "m", Turns: 1}}, usage.Usage); d != "" {
		t.Error(d)
	}
	var agents struct{ Schemas []catalog.SchemaRow }
	w.call("POST", "/query/", `{"mode":"SQL","query":"schemas"}`, nil, &agents)
	var listed []catalog.SchemaRow
	w.call("GET", "/schemas/", "", nil, &listed)
	if d := cmp.Diff(listed, agents.Schemas); d != "" || len(listed) == 0 {
		t.Error(d)
	}
}

// A query accepts its own parameters and no others.
func TestQueryRefuses(t *testing.T) {
	w := newWorld(t, nil)
	for body, pointer := range map[string]string{
		`{"mode":"WALK","query":"x"}`:                                     "/mode",
		`{"query":"usage"}`:                                               "/mode",
		`{"mode":"SQL","query":"SELECT 1","limit":3}`:                     "/query",
		`{"mode":"SQL"}`:                                                  "/query",
		`{"mode":"LOOKUP","query":""}`:                                    "/query",
		`{"mode":"SEARCH","query":""}`:                                    "/query",
		`{"mode":"SEARCH","query":"x","limit":51}`:                        "/limit",
		`{"mode":"SEARCH","query":"x","after":"c"}`:                       "/mode",
		`{"mode":"SQL","query":"schemas","since":"2026-11-20T00:00:00Z"}`: "/query",
		`{"mode":"SQL","query":"usage","user":"bob"}`:                     "/user",
	} {
		w.refused("POST", "/query/", body, nil, intents.SchemaInvalid, pointer)
	}
	w.refused("POST", "/query/", `{"mode":"SQL","query":"usage","tenant_id":"evil"}`, nil, intents.RBACForbidden, "/tenant_id")
	if n := len(w.asked(readapi.Usage)) + len(w.asked(readapi.Messages)) + len(w.submits("memory.query")); n != 0 {
		t.Errorf("%d intents were carried out", n)
	}
}

// TestQueryOfAgents: a user who may not list the agents reads none in a statement.
func TestQueryOfAgents(t *testing.T) {
	w := newWorld(t, nil)
	w.set(func(c *core) {
		c.refuse[readapi.Agents] = &intents.Answer{Code: intents.RBACForbidden, Reason: "needs plans:read"}
	})
	w.refused("POST", "/query/", `{"mode":"sql","query":"SELECT body FROM \"Schemas_rows\""}`, nil, intents.RBACForbidden, "")
	if n := len(w.submits("memory.query")); n != 0 {
		t.Errorf("%d statements", n)
	}
	if resp := w.call("POST", "/query/", `{"mode":"SQL","query":"SELECT 1"}`, nil, nil); resp.StatusCode != http.StatusOK {
		t.Errorf("HTTP %d", resp.StatusCode)
	}
}
