package e2e

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/intents"
)

// TestMenu: of a menu of 1 MB two members of each
// item are extracted and kept as menu_categories.
func TestMenu(t *testing.T) {
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
	m := &mind{
		plan: func(planning) model.Call {
			return steps(step(1, "Menu categories", "menu_get", 0, "array<{item_id: string, category: string}>"))
		},
		act: func(in working) action {
			if len(in.Calls) == 0 {
				return use("menu_get", "{}")
			}
			return extract
		},
		script: func(scripting) string {
			return "import json\nprint(json.dumps([{k: r[k] for k in ('item_id', 'category')} for r in json.load(open(input_file))]))"
		},
	}
	server := serveSkills(t, skill{name: "menu_get", about: "The menu with all its items.", do: always(menu)})
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
	if ran := got.events("python_script.executed"); len(ran) != 1 || ran[0]["input_rows"] != 2000.0 || ran[0]["output_rows"] != float64(len(want)) {
		t.Errorf("scripts %v", ran)
	}
}

// TestPrincipalAtEveryHop: who asked is who every order of the turn is for, and
// who the skill server is told, whatever the model says; the caller's API key
// goes nowhere.
func TestPrincipalAtEveryHop(t *testing.T) {
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
	for _, o := range got.Orders {
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
