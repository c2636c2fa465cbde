package agentic

import (
	"context"
	"encoding/json"
	"slices"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/state/agents"
)

var searchTool = model.Tool{
	Name: "search", Description: "Searches what is remembered for the user: memories, moments of conversations, and messages; and documents. KNOWLEDGE: parts of documents of the user and the organisation that are like the text. LOOKUP: what stands under the key in query. SEARCH, FUZZY: what is like the text. TRAVERSE: moments that are linked with the one of the key. SQL: one SELECT over the views memory(key, text, created_at), moments(key, kind, text, edges, session_id, created_at) and messages(message_id, session_id, message_type, content, created_at).\nEffect: pure.",
	Schema: json.RawMessage(`{"type":"object","properties":{"mode":{"enum":["LOOKUP","SEARCH","FUZZY","TRAVERSE","SQL","KNOWLEDGE"]},"query":{"type":"string","minLength":1,"maxLength":4096},"limit":{"type":"integer","minimum":1,"maximum":50}},"required":["mode","query"],"additionalProperties":false}`),
}

type searchArgs struct {
	Mode  string `json:"mode"`
	Query string `json:"query"`
	Limit int    `json:"limit,omitempty"`
}

// searches reports whether an agent has the tool search.
func searches(a *agents.Agent) bool {
	return slices.ContainsFunc(a.Tools, func(t agents.Tool) bool { return t.ID() == searchTool.Name })
}

// inKnowledge is the mode that searches documents.
const inKnowledge = "KNOWLEDGE"

// search is one intent memory.query, or kb.search. The value of a key becomes a result like that
// of a skill.
func (w *worker) search(ctx context.Context, label string, a searchArgs) (any, error) {
	var got json.RawMessage
	if a.Mode == inKnowledge {
		q := catalog.KBSearch{Q: a.Query}
		if a.Limit != 0 {
			q.K = &a.Limit
		}
		answer, err := w.submit(ctx, "kb.search", q, &got)
		if err != nil {
			return nil, err
		}
		return w.keep(label, answer.IntentID, got, nil), nil
	}
	answer, err := w.submit(ctx, "memory.query", catalog.MemoryQuery{Mode: a.Mode, Text: a.Query, TopK: a.Limit}, &got)
	if err != nil {
		return nil, err
	}
	return w.found(label, answer.IntentID, got), nil
}

func (w *worker) found(label, intentID string, result json.RawMessage) any {
	var got catalog.MemoryQueryResult
	if json.Unmarshal(result, &got) == nil && got.ReadMemoryResult != nil {
		return w.keep(label, intentID, got.Data, got.Reference)
	}
	return w.keep(label, intentID, result, nil)
}
