package agentic

import (
	"context"
	"encoding/json"
	"slices"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/intents/catalog"
)

// The built-in tools, as models see them, with their arguments.

// called adapts a function over decoded arguments to the call of a tool.
func called[Args any](fn func(ctx context.Context, label string, args Args) (any, error)) func(context.Context, string, json.RawMessage) (any, error) {
	return func(ctx context.Context, label string, raw json.RawMessage) (any, error) {
		var args Args
		if err := json.Unmarshal(raw, &args); err != nil {
			return nil, mistaken("the arguments cannot be used: %v", err) // such as a number out of range
		}
		return fn(ctx, label, args)
	}
}

// bounds are keywords that a model need not read: a call beyond them is answered with the bound.
var bounds = []string{"minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems", "uniqueItems", "pattern", "minProperties", "maxProperties"}

// withoutBounds returns the schema of a tool of this system as a model reads it.
func withoutBounds(schema json.RawMessage) json.RawMessage {
	var v any
	if json.Unmarshal(schema, &v) != nil {
		return schema
	}
	var drop func(v any, names bool)
	drop = func(v any, names bool) { // names: the members of v are names of the tool's own
		switch v := v.(type) {
		case map[string]any:
			for name, of := range v {
				if !names && slices.Contains(bounds, name) {
					delete(v, name)
					continue
				}
				drop(of, !names && name == "properties")
			}
		case []any:
			for _, of := range v {
				drop(of, false)
			}
		}
	}
	drop(v, false)
	return compact(v)
}

var findSkillsTool = model.Tool{
	Pure: true, Name: "find_relevant_skills", Description: "Finds skills whose name or description shares words with the query, best first.",
	Schema: json.RawMessage(`{"type":"object","properties":{"query":{"type":"string","minLength":1,"maxLength":1000}},"required":["query"],"additionalProperties":false}`),
}

var loadSkillTool = model.Tool{
	Pure: true, Name: "load_skill", Description: "Loads skills by name: their descriptions, input and output schemas, and whether a call changes data.",
	Schema: json.RawMessage(`{"type":"object","properties":{"skills":{"type":"array","items":{"type":"string","minLength":1,"maxLength":128},"minItems":1,"maxItems":20}},"required":["skills"],"additionalProperties":false}`),
}

type loadSkillArgs struct {
	Skills []string `json:"skills"`
}

type loadSkillResult struct {
	Skills      []plannable `json:"skills"`
	Unavailable []string    `json:"unavailable,omitempty"` // not approved, or their server does not answer
}

var planTool = model.Tool{
	Name: "plan", Description: "Ends your work with the plan: exactly one of steps, answer, ask and infeasible.",
	Schema: json.RawMessage(`{"type":"object","properties":{
"steps":{"type":"array","minItems":1,"maxItems":50,"items":{"type":"object","properties":{
"step":{"type":"integer","minimum":1,"maximum":100},
"id":{"type":"string","pattern":"^[A-Za-z0-9_.-]{1,64}$"},
"task":{"type":"string","minLength":1,"maxLength":4096},
"skills":{"type":"array","items":{"type":"string","minLength":1,"maxLength":128},"maxItems":20},
"inputs":{"type":"array","items":{"type":"integer","minimum":1,"maximum":100},"maxItems":10,"uniqueItems":true},
"after":{"type":["array","null"],"items":{"type":"integer","minimum":1,"maximum":100},"maxItems":10,"uniqueItems":true},
"parallel":{"type":"boolean"},
"return_spec":{"type":"object","properties":{"shape":{"type":"string","minLength":1,"maxLength":4096},"reason":{"type":"string","maxLength":1024}},"required":["shape","reason"],"additionalProperties":false}},
"required":["step","task","skills","return_spec"],"additionalProperties":false}},
"calls":{"type":"array","maxItems":50,"items":{"type":"object","properties":{"step":{"type":"integer","minimum":1,"maximum":100},"skill":{"type":"string","minLength":1,"maxLength":128},"input":{"type":"object"}},"required":["step","skill","input"],"additionalProperties":false},"description":"calls of skills whose whole input is known already: their step begins with them"},
"drop":{"type":"array","items":{"type":"integer","minimum":1,"maximum":100},"maxItems":10,"uniqueItems":true,"description":"numbers of waiting steps that are given up, with what they wait for"},
"answer":{"type":"string","minLength":1,"maxLength":32768,"description":"the whole answer, where nothing need be looked up or changed"},
"ask":{"type":"string","minLength":1,"maxLength":4096,"description":"a question to the user, whose answer comes as the next request"},
"infeasible":{"type":"string","minLength":1,"maxLength":1000,"description":"why it cannot be done, for the user"}},
"additionalProperties":false}`),
}

type planArgs struct {
	Steps      []catalog.PlanStep `json:"steps,omitempty"`
	Calls      []plannedCall      `json:"calls,omitempty"`
	Drop       []int              `json:"drop,omitempty"`
	Answer     string             `json:"answer,omitempty"`
	Ask        string             `json:"ask,omitempty"` // the user; the plan ends with it
	Infeasible string             `json:"infeasible,omitempty"`
}

// plannedCall is a call that a step begins with.
type plannedCall struct {
	Step  int             `json:"step"`
	Skill string          `json:"skill"`
	Input json.RawMessage `json:"input"`
}

var readLinesTool = model.Tool{
	Pure: true, Name: "read_lines", Description: "Reads lines of a large result by its label; start counts from 0.",
	Schema: json.RawMessage(`{"type":"object","properties":{"from":{"type":"string"},"start":{"type":"integer","minimum":0},"n":{"type":"integer","minimum":1,"maximum":1000}},"required":["from","start","n"],"additionalProperties":false}`),
}

type readLinesArgs struct {
	From  string `json:"from"`
	Start int    `json:"start"`
	N     int    `json:"n"`
}

var execPythonTool = model.Tool{
	Name: "exec_python", Description: "Runs a Python 3 script in a sandbox, without network. The variable input_file holds the path of the data of the label in from; with inputs, of one JSON object that has the data of each label as a member. The script prints one JSON document.",
	Schema: json.RawMessage(`{"type":"object","properties":{"script":{"type":"string","minLength":1,"maxLength":32768},"from":{"type":"string","description":"the label of a result: r0, r1, …"},"inputs":{"type":"array","items":{"type":"string"},"minItems":1,"maxItems":32,"uniqueItems":true,"description":"labels of several results"}},"required":["script"],"additionalProperties":false}`),
}

type execPythonArgs struct {
	Script string   `json:"script"`
	From   string   `json:"from,omitempty"`
	Inputs []string `json:"inputs,omitempty"`
}

var writeMemoryTool = model.Tool{
	Name: "write_memory", Description: "Ends your work with the result of the step, which return_schema describes: from is the label of a result that is it, data the value itself. One of the two.",
	Schema: json.RawMessage(`{"type":"object","properties":{"from":{"type":"string"},"data":{},"answer":{"type":"string"},"notes":{"type":"string","minLength":1,"maxLength":4096,"description":"what the answer should say beside the data, such as a limit or a doubt"}},"additionalProperties":false}`),
}

type writeMemoryArgs struct {
	From   string          `json:"from,omitempty"`
	Data   json.RawMessage `json:"data,omitempty"`
	Answer string          `json:"answer,omitempty"`
	Notes  string          `json:"notes,omitempty"` // beside the data, for the answer or the next revision
}

var insufficientTool = model.Tool{
	Name: "insufficient", Description: "Ends your work because the step cannot be done with your tools.",
	Schema: json.RawMessage(`{"type":"object","properties":{"reason":{"type":"string","minLength":1,"maxLength":1000},"suggestion":{"type":"string","maxLength":1000,"description":"what could be tried instead"}},"required":["reason"],"additionalProperties":false}`),
}

type insufficientArgs struct {
	Reason     string `json:"reason"`
	Suggestion string `json:"suggestion"`
}

var searchTool = model.Tool{
	Pure: true, Name: "search", Description: "Searches what is remembered for the user: memories, moments of conversations, and messages; and documents. KNOWLEDGE: parts of documents of the user and the organisation that are like the text. LOOKUP: what stands under the key in query. SEARCH, FUZZY: what is like the text. TRAVERSE: moments that are linked with the one of the key. SQL: one SELECT over the views memory(key, text, created_at), moments(key, kind, text, edges, session_id, created_at) and messages(message_id, session_id, message_type, content, created_at).",
	Schema: json.RawMessage(`{"type":"object","properties":{"mode":{"enum":["LOOKUP","SEARCH","FUZZY","TRAVERSE","SQL","KNOWLEDGE"]},"query":{"type":"string","minLength":1,"maxLength":4096},"limit":{"type":"integer","minimum":1,"maximum":50}},"required":["mode","query"],"additionalProperties":false}`),
}

// search is one intent memory.query, or kb.search. The value of a key becomes a result like that
// of a skill.
func (w *worker) search(ctx context.Context, label string, a catalog.SearchArgs) (any, error) {
	var got json.RawMessage
	if a.Mode == catalog.SearchKnowledge {
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
	var texts []string
	for _, h := range got.Hits {
		texts = append(texts, h.Text)
	}
	kept := w.keep(label, intentID, result, nil)
	kept.Cut = cutOf(len(got.Rows) == catalog.MaxRows, texts...)
	return kept
}
