package agentic

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/state/agents"
)

// dreaming has the core return a plan of the dreaming agent in a session.
func dreaming(c *core) {
	c.t.Helper()
	answerTransitions(c, catalog.PlanView{
		PlanID: "plan_1", Status: catalog.PlanExecuting, Task: "Write down the moments.", Agent: agents.Dreaming, PlanDigest: intents.Digest(nil),
		Steps: []catalog.StepView{{Status: catalog.StepPending, PlanStep: catalog.PlanStep{Step: 1, Task: agents.Dreaming, Skills: []string{}, ReturnSpec: catalog.ReturnSpec{Shape: "string"}}}},
	})
	c.on("soul.get", refuse(intents.NotFound, "no soul"))
	c.on("session.get", done(catalog.Session{Status: catalog.SessionActive, TurnHistory: []catalog.Turn{
		{Role: "system", Content: "[Session context] sess_1:old: An old one."}, {Role: "user", Content: "I sail on Friday."}, {Role: "agent", Content: "Noted."},
	}}))
	c.on("agent.get", done(catalog.AgentGetResult{Agent: agents.Dreaming, TimeLimitSec: 300}))
}

const dreamed = `{"moments":[
{"key":"sailing","summary":"The user sails on Friday.","topics":["boat"],"emotions":["glad"]},{"key":"weather-worry","summary":"They fear rain.","topics":[],"emotions":[]}],
"affinities":[{"from":"weather-worry","to":"sailing","kind":"explains","weight":0.5},{"from":"sess_1:old","to":"sailing","kind":"builds_on","weight":0.25},
{"from":"sailing","to":"nowhere","kind":"explains","weight":1}]}`

// TestDream: the agent receives the session and its moments; its result becomes moments with
// their edges, one that summarizes them, and a memory in the session. Nothing is appended as a
// turn.
func TestDream(t *testing.T) {
	c := newCore(t)
	dreaming(c)
	m := says(map[string][]any{agents.Dreaming: {call("final_result", json.RawMessage(dreamed))}})
	layer(c, m, "task", "manager")
	dispatchTurn(c)
	shown(c)
	if text := m.requests(agents.Dreaming)[0].Messages; len(text) != 5 || !strings.Contains(text[1].Text, "sess_1:old") || text[2].Text != "I sail on Friday." {
		t.Errorf("%+v", text)
	}
	var ref catalog.SessionRef
	if err := json.Unmarshal(c.ofType("session.get")[0].Args, &ref); err != nil || ref.TokenBudget != dreamTokens || ref.Moments != dreamMoments {
		t.Errorf("%+v %v", ref, err)
	}
	got := map[string]catalog.Moment{}
	for _, o := range c.ofType("write_memory") {
		var a catalog.WriteMemory
		var moment catalog.Moment
		if json.Unmarshal(o.Args, &a) != nil || json.Unmarshal(a.Data, &moment) != nil || a.Scope != "moment" || o.Role != intents.RoleManager {
			t.Errorf("%s by %s", o.Args, o.Role)
		}
		got[a.Label] = moment
	}
	sum := "sess_1:sailing: The user sails on Friday.\nsess_1:weather_worry: They fear rain.\n"
	if d := cmp.Diff(map[string]catalog.Moment{
		"sailing":       {Text: "The user sails on Friday.\nTopics: boat\nMood: glad", Edges: []catalog.Edge{{From: "sess_1:old", To: "sess_1:sailing", Kind: "builds_on", Weight: 0.25}, {From: "sess_1:sailing", To: "sess_1:nowhere", Kind: "explains", Weight: 1}}},
		"weather_worry": {Text: "They fear rain.", Edges: []catalog.Edge{{From: "sess_1:weather_worry", To: "sess_1:sailing", Kind: "explains", Weight: 0.5}}},
		"chunk_plan_1": {Kind: "session_chunk", Text: sum, Edges: []catalog.Edge{
			{From: "sess_1:chunk_plan_1", To: "sess_1:sailing", Kind: "sums_up", Weight: 1}, {From: "sess_1:chunk_plan_1", To: "sess_1:weather_worry", Kind: "sums_up", Weight: 1},
		}},
	}, got); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(map[string][]string{"dream:plan_1": {"memory: " + sum}}, appended(c)); d != "" {
		t.Error(d)
	}
	if end := closed(c); end.Status != "complete" || end.Response != string(compact(json.RawMessage(dreamed))) {
		t.Errorf("%+v", end)
	}
}

// TestNoDream: a dream that cannot be written fails the plan, and no text about it is written.
func TestNoDream(t *testing.T) {
	for name, change := range map[string]func(*core) []any{
		"no store": func(c *core) []any {
			c.on("write_memory", refuse(intents.ExecutorFailed, "the store does not answer"))
			return []any{call("final_result", json.RawMessage(dreamed))}
		},
		"no result": func(*core) []any { return []any{"I would rather not."} },
	} {
		t.Run(name, func(t *testing.T) {
			c := newCore(t)
			dreaming(c)
			layer(c, says(map[string][]any{agents.Dreaming: change(c)}), "task", "manager")
			dispatchTurn(c)
			shown(c)
			if end := closed(c); end.Status != "failed" || len(c.ofType("session.append")) != 0 {
				t.Errorf("%+v, %v", end, types(c.allPlaced()))
			}
		})
	}
}

// TestSearchTool: a search is one intent, its result has a label for later calls, and a resumed
// task reads it from the record.
func TestSearchTool(t *testing.T) {
	c := newCore(t)
	selling(c, seller)
	c.on("memory.query", done(catalog.MemoryQueryResult{ReadMemoryResult: &catalog.ReadMemoryResult{Key: "s:trip", Reference: &catalog.Reference{FileID: "f_9", SizeBytes: 60_000, SHA256: intents.Digest(nil), Sample: []string{"A"}}}}))
	c.on("exec_python", done(catalog.ExecPythonResult{Output: json.RawMessage(`2`)}))
	m := says(map[string][]any{"seller": {call("search", catalog.SearchArgs{Mode: "LOOKUP", Query: "s:trip"}), call("exec_python", execPythonArgs{Script: "print(2)", From: "r1"}), "Two."}})
	layer(c, m, "task", "manager")
	dispatchTurn(c)
	shown(c)
	if o := c.ofType("memory.query"); len(o) != 1 || string(o[0].Args) != `{"mode":"LOOKUP","text":"s:trip"}` || o[0].Call != "1.0" {
		t.Fatalf("%+v", o)
	}
	if p := c.ofType("exec_python"); len(p) != 1 || !strings.Contains(string(p[0].Args), `"from":"f_9"`) {
		t.Errorf("%+v", p)
	}
	w := &worker{loop: &loop{}, material: map[string]*material{}}
	earlier := catalog.TranscriptCall{CallSummary: catalog.CallSummary{Type: "memory.query", Status: "done"}, Args: c.ofType("memory.query")[0].Args, Result: json.RawMessage(`{"hits":[],"by":"words"}`)}
	if name, args := w.recalled(earlier); name != "search" || string(compact(args)) != `{"mode":"LOOKUP","query":"s:trip"}` {
		t.Errorf("%s %s", name, compact(args))
	}
	if got, err := w.result(earlier, "r1"); err != nil || string(compact(got)) != `{"label":"r1","result":{"hits":[],"by":"words"}}` {
		t.Errorf("%s %v", compact(got), err)
	}
}

// TestSearchKnowledge: the mode KNOWLEDGE is one intent kb.search, also when a task continues
// from a record.
func TestSearchKnowledge(t *testing.T) {
	c := newCore(t)
	selling(c, seller)
	c.on("kb.search", done(catalog.KBSearchResult{Hits: []catalog.KBHit{{Title: "Ports", Text: "It opens at six."}}, By: []string{"words"}}))
	said := catalog.SearchArgs{Mode: "KNOWLEDGE", Query: "harbour", Limit: 3}
	m := says(map[string][]any{"seller": {call("search", said), "At six."}})
	layer(c, m, "task", "manager")
	dispatchTurn(c)
	shown(c)
	if o := c.ofType("kb.search"); len(o) != 1 || string(o[0].Args) != `{"k":3,"q":"harbour"}` || len(c.ofType("memory.query")) != 0 {
		t.Fatalf("%+v", o)
	}
	w := &worker{loop: &loop{}, material: map[string]*material{}}
	earlier := catalog.TranscriptCall{CallSummary: catalog.CallSummary{Type: "kb.search", Status: "done"}, Args: c.ofType("kb.search")[0].Args, Result: json.RawMessage(`{"hits":[],"by":["words"]}`)}
	if name, args := w.recalled(earlier); name != "search" || args != said {
		t.Errorf("%s %+v", name, args)
	}
	if got, err := w.result(earlier, "r1"); err != nil || string(compact(got)) != `{"label":"r1","result":{"hits":[],"by":["words"]}}` {
		t.Errorf("%s %v", compact(got), err)
	}
}
