package e2e

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/bus"
	"aob.dev/writ/intents"
	"aob.dev/writ/state/agents"
)

// TestMenu: of a menu of 1 MB two members of each item are extracted and kept as
// menu_categories: from the planner, which finds the skill, loads it and is told to correct a plan
// that it cannot meet, over a script whose result is not what the step asks for, to the answer.
func TestMenu(t *testing.T) {
	t.Parallel()
	type item struct {
		ID       string `json:"item_id"`
		Category string `json:"category"`
		About    string `json:"about"`
	}
	var menu []item
	var want []map[string]string
	for i := range 2000 {
		id, category := fmt.Sprint("i", i), []string{"soup", "fish", "dessert"}[i%3]
		menu = append(menu, item{id, category, strings.Repeat("A dish with a long story. ", 20)})
		want = append(want, map[string]string{"item_id": id, "category": category})
	}
	var unmet []string
	m := &mind{
		plan: func(in planning) model.Call {
			if len(in.Violations) == 0 {
				return steps(step(1, "Menu categories", "menu_get", 0, "array<{stars: integer}>"))
			}
			unmet = in.Violations
			return steps(step(1, "Menu categories", "menu_get", 0, "array<{item_id: string, category: string}>"))
		},
		act: func(in working) action {
			if len(in.Calls) == 0 {
				return use("menu_get", "{}")
			}
			return extract
		},
		script: func(in scripting) string {
			if in.Error == "" {
				return "import json\nprint(json.dumps([{'item_id': r['item_id']} for r in json.load(open(input_file))['items']]))"
			}
			return "import json\nprint(json.dumps([{k: r[k] for k in ('item_id', 'category')} for r in json.load(open(input_file))['items']]))"
		},
	}
	server := serveSkills(t, skill{
		name: "menu_get", about: "The menu with all its items.", do: always(map[string]any{"items": menu}),
		output: `{"type":"object","properties":{"items":{"type":"array","items":{"type":"object","properties":{"item_id":{"type":"string"},"category":{"type":"string"},"about":{"type":"string"}}}}}}`,
	})
	s := start(t, setup{Skills: []string{server.url}, Model: m})
	got := s.ask(s.as("ana"), "Which category has each item of the menu?")
	if got.Status != "complete" {
		t.Fatalf("%s: %s", got.Status, got.Reason)
	}
	if key := got.Plan.Steps[0].MemoryKey; !strings.HasSuffix(key, ":menu_categories") {
		t.Errorf("kept as %s", key)
	}
	if large := got.events("large_response.detected"); len(large) == 0 || large[0]["size_bytes"].(float64) < 1_000_000 {
		t.Errorf("large responses %v", large)
	}
	if len(unmet) != 1 || !strings.Contains(unmet[0], "declares any member of return_spec.shape") {
		t.Errorf("the planner is told %q", unmet)
	}
	var ran []any
	for _, p := range got.events("python_script.executed") {
		ran = append(ran, p["output_rows"])
	}
	if d := gocmp.Diff([]any{float64(len(want)), float64(len(want))}, ran); d != "" {
		t.Errorf("scripts (-want +got):\n%s", d)
	}
	kept := decoded[bus.ArtifactData](string(got.Data))
	var stored []map[string]string
	if status, p := s.call(s.as("ana"), http.MethodGet, kept.URL, nil, &stored); status != http.StatusOK {
		t.Fatalf("%s: HTTP %d %+v", kept.URL, status, p)
	}
	if d := gocmp.Diff(want, stored); d != "" {
		t.Errorf("menu_categories (-want +got):\n%s", d)
	}
	var flow []string
	for _, o := range got.Intents {
		flow = append(flow, o.Type)
	}
	if d := gocmp.Diff(strings.Fields(`plan.open plan.claim soul.get session.get skill.find skill.load plan
		step skill.load skill.call exec_python exec_python write_memory step.finish read_memory read_memory artifact.put session.append plan.close`), flow); d != "" {
		t.Errorf("intents (-want +got):\n%s", d)
	}
	if told := requestsOf(m, agents.Composer, func(r model.Request) string { return messageOf(r) }); len(told) != 1 || got.Response == "" {
		t.Errorf("the answer %q is made from %q", got.Response, told)
	}
}

// TestPrincipalAtEveryHop: the user who asked is the principal of every intent of the turn, and the
// one sent to the skill server, whatever the model writes; the caller's API key goes nowhere.
func TestPrincipalAtEveryHop(t *testing.T) {
	t.Parallel()
	var told []any
	var headers []http.Header
	m := server.NewMCPServer("e2e", "1", server.WithToolCapabilities(false))
	m.AddTool(skill{name: "stock_list", about: "The stock of the warehouse.", input: `{"type":"object"}`}.tool(), func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		headers = append(headers, req.Header)
		if req.Params.Meta != nil {
			told = append(told, req.Params.Meta.AdditionalFields["aob.dev/principal"])
		}
		return mcp.NewToolResultText(`{"status":"ok","principal":"ana","domain_type":"d","enricher_id":"e","version":"1.0.0","payload":[{"item":"bolt","quantity":7}]}`), nil
	})
	srv := httptest.NewServer(server.NewStreamableHTTPServer(m, server.WithStateLess(true), server.WithDisableStreaming(true)))
	t.Cleanup(func() {
		srv.CloseClientConnections()
		srv.Close()
	})
	think := &mind{
		plan: func(planning) model.Call {
			return steps(step(1, "list the stock", "stock_list", 0, stockShape))
		},
		act: func(in working) action {
			if len(in.Calls) == 0 {
				return use("stock_list", `{"principal":"mallory","user_id":"mallory"}`)
			}
			return finish
		},
	}
	s := start(t, setup{Skills: []string{srv.URL + "/mcp"}, Model: think})
	got := s.ask(s.as("ana"), stockTask)
	if got.Status != "complete" {
		t.Fatalf("%s: %s", got.Status, got.Reason)
	}
	roles := map[intents.Role]bool{}
	for _, o := range got.Intents {
		roles[o.Signer] = true
		if o.User != "ana" || o.Tenant != "default" || o.Decision.Verdict != intents.Allow {
			t.Errorf("%s by a %s key is for %s of %s: %s", o.Type, o.Signer, o.User, o.Tenant, o.Decision.Code)
		}
	}
	if len(roles) != 4 || len(told) != 1 || told[0] != "ana" || len(got.events("skill.principal_mismatch")) != 0 {
		t.Errorf("signed by %v, the skill server was told %v", roles, told)
	}
	for _, h := range headers {
		if h.Get("X-Api-Key") != "" || strings.Contains(fmt.Sprint(h), s.key) {
			t.Error("the skill server was given the caller's API key")
		}
	}
}
