package catalog

import (
	"encoding/json"

	"aob.dev/writ/intents"
)

// Arguments of tools of agents that are not those of the tool's intent.
type (
	// SearchArgs of the tool search.
	SearchArgs struct {
		Mode  string `json:"mode"`
		Query string `json:"query"`
		Limit int    `json:"limit,omitempty"`
	}
	// AskArgs of a tool that asks an agent. One for a single agent has no Agent.
	AskArgs struct {
		Agent string `json:"agent_name,omitempty"`
		Input string `json:"input_text"`
	}
	// FindArgs of a tool that finds something.
	FindArgs struct {
		Query string `json:"query"`
	}
)

// SearchKnowledge is the mode of the tool search that searches documents.
const SearchKnowledge = "KNOWLEDGE"

// Written returns the tool of this system that an agent's model has called for an intent, with the
// arguments as the model wrote them. tool is empty if it has another name, and written the intent's
// own arguments if they are the same. Members that a policy hides are zero.
func Written(typ string, args json.RawMessage) (tool string, written any) {
	switch typ {
	case "memory.query":
		var a MemoryQuery
		_ = json.Unmarshal(args, &a) // recorded arguments matched their schema
		return "search", SearchArgs{a.Mode, a.Text, a.TopK}
	case "kb.search":
		a, limit := KBSearch{}, 0
		if _ = json.Unmarshal(args, &a); a.K != nil {
			limit = *a.K
		}
		return "search", SearchArgs{SearchKnowledge, a.Q, limit}
	case "skill.find":
		var a SkillFind
		_ = json.Unmarshal(args, &a)
		return "find_tools", FindArgs{a.Query}
	case intents.TypeAgentAsk:
		var a AgentAsk
		_ = json.Unmarshal(args, &a)
		return "ask_agent", AskArgs{a.Agent, a.Input}
	case "approval.ask":
		return "ask_people", args
	case "schedule.put", "schedule.list", "schedule.delete":
		return "remind_me", args
	}
	return "", args
}
