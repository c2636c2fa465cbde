package schemas

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// tree is a schema document read plainly.
type tree struct {
	ID          string           `json:"$id"`
	Ref         string           `json:"$ref"`
	Type        any              `json:"type"`
	Format      string           `json:"format"`
	Enum        []any            `json:"enum"`
	Default     any              `json:"default"`
	Kind        string           `json:"x-writ-kind"`
	Required    []string         `json:"required"`
	Properties  map[string]*tree `json:"properties"`
	Definitions map[string]*tree `json:"definitions"`
	Items       *tree            `json:"items"`
	Additional  any              `json:"additionalProperties"`
}

func read(t *testing.T, id string) *tree {
	t.Helper()
	s, err := Lookup(Base + id)
	if err != nil {
		t.Fatal(err)
	}
	var out tree
	if err := json.Unmarshal(s.Source(), &out); err != nil {
		t.Fatal(err)
	}
	return &out
}

// TestEnvelopeDocument checks the document as other readers see it.
func TestEnvelopeDocument(t *testing.T) {
	e := read(t, "envelope.json")
	if e.ID != "https://aob.dev/schemas/envelope.json" || e.Properties["intent"].Ref != "#/definitions/intent" {
		t.Errorf("$id %s, intent %+v", e.ID, e.Properties["intent"])
	}
	for name, tt := range map[string]struct {
		node *tree
		want []string
	}{
		"envelope":    {e, []string{"version", "intent", "actor", "constraints", "sig"}},
		"intent":      {e.Definitions["intent"], []string{"type", "args"}},
		"actor":       {e.Properties["actor"], []string{"user_id", "tenant"}},
		"constraints": {e.Properties["constraints"], []string{"issued_at", "ttl_sec", "audience", "idempotency_key"}},
	} {
		if d := cmp.Diff(tt.want, tt.node.Required); d != "" || tt.node.Additional != false {
			t.Errorf("%s: closed %v, required (-want +got):\n%s", name, tt.node.Additional == false, d)
		}
	}
	for name, want := range map[string]any{"trace_id": "string", "sig": "string"} {
		if got := e.Properties[name].Type; got != want {
			t.Errorf("%s is %v", name, got)
		}
	}
}

// TestUnsignedIsTheEnvelopeWithoutSig: the signed form has no sig, the transmitted form has one.
func TestUnsignedIsTheEnvelopeWithoutSig(t *testing.T) {
	published, err := Lookup(Base + "envelope.json")
	if err != nil {
		t.Fatal(err)
	}
	signed := strings.Replace(valid, `{"version"`, `{"sig":"`+"e30.."+strings.Repeat("A", 86)+`","version"`, 1)
	for _, tt := range []struct {
		name  string
		by    *Schema
		doc   string
		found []Violation
	}{
		{"unsigned", Unsigned(), valid, nil},
		{"signed as unsigned", Unsigned(), signed, []Violation{{"/sig", "unknown member"}}},
		{"signed", published, signed, nil},
		{"unsigned as signed", published, valid, []Violation{{"/sig", "is required"}}},
	} {
		if diff := cmp.Diff(tt.found, tt.by.ValidateBytes([]byte(tt.doc))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

// stored are the members that the requirements demand of five indices, by their types there.
var stored = map[string]map[string]string{
	"agent_memory": {
		"id": "keyword", "tenant_id": "keyword", "session_id": "keyword", "task_id": "keyword", "user_id": "keyword", "scope": "keyword", "key": "keyword",
		"source": "keyword", "plan_id": "keyword", "locked_by": "keyword", "text": "text", "step_index": "integer",
		"lock_expires": "date", "created_at": "date", "ttl_at": "date", "embedding": "knn_vector",
	},
	"agent_plans": {
		"plan_id": "keyword", "session_id": "keyword", "tenant_id": "keyword", "user_id": "keyword", "status": "keyword", "replan_count": "integer",
		"created_at": "date", "completed_at": "date", "steps": "nested", "replan_history": "nested",
	},
	"agent_plans/steps": {
		"step_index": "integer", "input_from_step": "integer", "task": "text", "failure_reason": "text", "skills": "list", "status": "keyword",
		"task_id": "keyword", "memory_key": "keyword", "validated": "boolean", "started_at": "date", "finished_at": "date", "return_spec": "object",
	},
	"agent_plans/replan_history": {"attempt": "integer", "failed_step": "integer", "trigger": "keyword", "reason": "text", "revised_at": "date"},
	"agent_souls":                {"id": "keyword", "tenant_id": "keyword", "user_id": "keyword", "key": "keyword", "persona": "object", "policies": "object", "updated_at": "date"},
	"agent_souls/persona":        {"name": "keyword", "tone": "keyword", "language": "keyword", "system_prompt": "text"},
	"agent_sessions": {
		"session_id": "keyword", "tenant_id": "keyword", "user_id": "keyword", "state": "keyword", "started_at": "date", "last_active": "date", "messages": "nested",
	},
	"agent_sessions/messages": {"msg_id": "keyword", "role": "keyword", "content": "text", "ts": "date"},
	"agent_events": {
		"event_id": "keyword", "tenant_id": "keyword", "session_id": "keyword", "plan_id": "keyword", "task_id": "keyword", "event_type": "keyword",
		"skill_id": "keyword", "script_hash": "keyword", "payload": "object", "ts": "date",
	},
}

// typeOf is a member's type in the terms of the requirements; keyword and text are both strings
// here.
func typeOf(n *tree) string {
	switch {
	case n.Format == "date-time":
		return "date"
	case n.Type == "string" || len(n.Enum) > 0:
		return "string"
	case n.Type == "array" && n.Kind == "vector" && n.Items.Type == "number":
		return "knn_vector"
	case n.Type == "array" && n.Items.Type == "string":
		return "list"
	case n.Type == "array" && n.Items.Type == "object":
		return "nested"
	}
	s, _ := n.Type.(string)
	return s
}

// TestStoredDocuments: every index is closed at the top and has the required members.
func TestStoredDocuments(t *testing.T) {
	for _, index := range []string{"agent_memory", "agent_plans", "agent_souls", "agent_sessions", "agent_events"} {
		doc := read(t, "storage/"+index+".json")
		if doc.Additional != false {
			t.Errorf("%s takes members that it does not know", index)
		}
		check := func(name string, n *tree) {
			for member, want := range stored[name] {
				if want == "keyword" || want == "text" {
					want = "string"
				}
				if n.Properties[member] == nil || typeOf(n.Properties[member]) != want {
					t.Errorf("%s.%s is %+v, want %s", name, member, n.Properties[member], want)
				}
			}
		}
		check(index, doc)
		for member, n := range doc.Properties {
			if n.Items != nil {
				n = n.Items
			}
			check(index+"/"+member, n)
		}
	}
	want := []any{"pending", "planning", "executing", "replanning", "complete", "failed", "needs_input"}
	if d := cmp.Diff(want, read(t, "storage/agent_plans.json").Properties["status"].Enum); d != "" {
		t.Errorf("states of a plan (-want +got):\n%s", d)
	}
}

// TestAgentDocument: a declared agent is one flat document.
func TestAgentDocument(t *testing.T) {
	s, err := Lookup(Base + "agent.json")
	if err != nil {
		t.Fatal(err)
	}
	const flat = `{"type":"object","name":"ranker","description":"You rank.","properties":{"intent":{"type":"string"}},"model":"openai:m","temperature":0.2,
		"tools":[{"name":"search","server":null,"description":"Only this week."},{"name":"act","server":"rem"}],"limits":{"request_limit":10,"total_tokens_limit":50000},"structured_output":false}`
	if v := s.ValidateBytes([]byte(flat)); v != nil {
		t.Errorf("%v", v)
	}
	for _, bad := range []string{
		`{"type":"array","name":"a","description":"x"}`, `{"type":"object","name":"a"}`, `{"type":"object","name":"a","description":"x","json_schema":{}}`,
		`{"type":"object","name":"a","description":"x","limits":{"request_limit":0}}`, `{"type":"object","name":"a","description":"x","tools":[{"description":"s"}]}`,
	} {
		if v := s.ValidateBytes([]byte(bad)); v == nil {
			t.Errorf("%s passes", bad)
		}
	}
	if got := read(t, "agent.json").Properties["structured_output"].Default; got != false {
		t.Errorf("structured_output defaults to %v", got)
	}
}

// TestMessageRow: a row of agent_messages is a message, a tool call without content, or its
// answer, with the model's usage; nothing else.
func TestMessageRow(t *testing.T) {
	s, err := Storage("agent_messages")
	if err != nil {
		t.Fatal(err)
	}
	const head = `{"message_id":"m1","tenant_id":"acme","session_id":"s1","created_at":"2026-11-20T10:00:00Z",`
	for _, good := range []string{
		`"message_type":"user","content":"hello"}`,
		`"message_type":"tool_call","content":null,"tool_calls":{"id":"c1","name":"search","arguments":{"q":"x"}}}`,
		`"message_type":"tool_response","content":"[1]","tool_calls":[{"id":"c1","name":"search"}]}`,
		`"message_type":"assistant","content":"good day","model":"openai:m","input_tokens":12,"output_tokens":3,"latency_ms":250,"agent_name":"general"}`,
	} {
		if v := s.ValidateBytes([]byte(head + good)); v != nil {
			t.Errorf("%s: %v", good, v)
		}
	}
	for _, bad := range []string{
		`"message_type":"robot","content":"x"}`, `"content":"x"}`, `"message_type":"user","content":7}`, `"message_type":"user","tool_calls":"search"}`,
		`"message_type":"assistant","input_tokens":-1}`, `"message_type":"user","colour":"red"}`,
	} {
		if v := s.ValidateBytes([]byte(head + bad)); v == nil {
			t.Errorf("%s passes", bad)
		}
	}
}
