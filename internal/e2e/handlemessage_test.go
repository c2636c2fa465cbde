package e2e

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"

	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/schemas"
)

// TestHandleMessage: another orchestrator talks to writ as to any agent. Its message is a turn of the
// employee's conversation, the same request is the same turn, and each answer is one of an agent,
// also while people must approve.
func TestHandleMessage(t *testing.T) {
	t.Parallel()
	shop := serveShop(t)
	s := start(t, setup{Skills: []string{shop.url}})
	ben, _, _ := s.holds("outlet_list")
	ana := s.addPerson("default", "ana", "user")
	answer, err := schemas.Lookup(schemas.Base + "handle_message_result.json")
	if err != nil {
		t.Fatal(err)
	}
	message := func(by person, changed map[string]any) (got map[string]any, plan string) {
		args := map[string]any{
			"session_id": "550e8400-e29b-41d4-a716-446655440000", "request_id": "660e8400-e29b-41d4-a716-446655440001", "employee_id": "ana", "raw_input": openInBerlin,
			"intent_summary": "Wants outlets", "entities": map[string]any{"city": "Berlin"}, "detected_language": "en", "workflow_state": map[string]any{},
			"turn_history": []any{map[string]any{"role": "user", "content": "Good morning", "timestamp": "2026-04-15T22:00:00Z"}, map[string]any{"role": "agent", "content": "Hello", "timestamp": "2026-04-15T22:00:05Z"}},
		}
		for name, value := range changed {
			args[name] = value
		}
		r, err := s.mcpClient(by).CallTool(t.Context(), mcp.CallToolRequest{Params: mcp.CallToolParams{Name: "handle_message", Arguments: args}})
		if err != nil {
			t.Fatal(err)
		}
		got, _ = r.StructuredContent.(map[string]any)
		if r.IsError {
			return got, ""
		}
		plan, _ = r.Meta.AdditionalFields["aob.dev/plan_id"].(string)
		text, _ := r.Content[0].(mcp.TextContent)
		var members map[string]json.RawMessage
		if json.Unmarshal([]byte(text.Text), &members) != nil || string(members["content"]) == "" {
			t.Errorf("no answer of an agent: %s", text.Text)
		}
		form, _ := json.Marshal(map[string]json.RawMessage{"content": members["content"], "workflow_complete": members["workflow_complete"]})
		if broken := answer.ValidateBytes(form); len(broken) > 0 {
			t.Errorf("%s: %v", text.Text, broken)
		}
		return got, plan
	}
	held, plan := message(ana, nil)
	if url, _ := held["url"].(string); held["status"] != "held" || held["workflow_complete"] != false || !strings.Contains(url, "/console/approvals/") || shop.count("outlet_list") != 0 {
		t.Fatalf("%v", held)
	}
	var opened catalog.PlanOpen
	if of := s.intents(plan)[0]; json.Unmarshal(of.Args, &opened) != nil || of.Context.SessionID != "550e8400-e29b-41d4-a716-446655440000" || len(opened.Turn.History) != 2 || opened.Turn.History[1].Role != "agent" || opened.Turn.Locale != "en" {
		t.Errorf("%+v %+v", of.Context, opened.Turn)
	}
	if out, p := s.decide(ben, held["intent_id"].(string), catalog.DecisionApprove, ""); p.Code != "" {
		t.Fatalf("%+v %+v", out, p)
	}
	s.await("the turn has ended", func() bool { return s.planOf(ana, plan).Status.Ended() })
	// The same request, by a program that may name anybody: it is ana's, and answered.
	got, again := message(person{key: s.key}, nil)
	if again != plan || got["workflow_complete"] != true || got["status"] != nil || shop.count("outlet_list") != 1 {
		t.Errorf("%v of %s, first %s", got, again, plan)
	}
	for name, changed := range map[string]map[string]any{"RBAC_FORBIDDEN": {"employee_id": "ben"}, "SCHEMA_INVALID": {"raw_input": ""}, "MALFORMED_ARGS": {"more": 1}} {
		if got, _ := message(ana, changed); got["code"] != name {
			t.Errorf("%s: %v", name, got)
		}
	}
}
