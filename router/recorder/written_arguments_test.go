package recorder

import (
	"encoding/json"
	"testing"

	"aob.dev/writ/state"
)

// TestWrittenArguments: the rows of a call have the tool and the arguments that the model wrote.
func TestWrittenArguments(t *testing.T) {
	for _, tt := range []struct{ typ, recorded, tool, written string }{
		{"skill.call", `{"skill":"crm.close","input":{"id":1e400}}`, "skill.call", `{"id":1e400}`},
		{"memory.query", `{"mode":"FUZZY","text":"boat","top_k":3}`, "search", `{"mode":"FUZZY","query":"boat","limit":3}`},
		{"kb.search", `{"q":"boat","k":2}`, "search", `{"mode":"KNOWLEDGE","query":"boat","limit":2}`},
		{"skill.find", `{"query":"boats"}`, "find_tools", `{"query":"boats"}`},
		{"approval.ask", `{"title":"May I?"}`, "ask_people", `{"title":"May I?"}`},
		{"schedule.put", `{"when":"2026-12-01T09:00"}`, "remind_me", `{"when":"2026-12-01T09:00"}`},
		{"action", `{"type":"show","payload":{}}`, "action", `{"type":"show","payload":{}}`},
	} {
		c, _ := calledBy(state.Intent{Type: tt.typ})
		if got := argsOf(state.Intent{Type: tt.typ, Args: json.RawMessage(tt.recorded)}, c.Name); string(got) != tt.written || c.Name != tt.tool {
			t.Errorf("%s %s, want %s %s", c.Name, got, tt.tool, tt.written)
		}
	}
	named := state.Intent{Type: "agent.ask", Args: json.RawMessage(`{"agent":"shop","input":"Which?"}`), Skill: ""}
	named.Context.Tool = "ask_shop"
	if c, _ := calledBy(named); c.Name != "ask_shop" || string(argsOf(named, c.Name)) != `{"input_text":"Which?"}` {
		t.Errorf("%s %s", c.Name, argsOf(named, c.Name))
	}
}
