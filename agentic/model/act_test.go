package model

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestFillFromTask(t *testing.T) {
	tests := []struct{ name, description, schema, task, want string }{
		{
			"forecast", "Weather forecast of a city.", `{"required":["city","days"],"properties":{"city":{"type":"string"},"days":{"type":"integer"},"unit":{"enum":["celsius","kelvin"]}}}`,
			"What is the weather forecast for New York for 3 days in kelvin?", `{"city":"New York","days":3,"unit":"kelvin"}`,
		},
		{"echo", "Echoes a message.", `{"required":["message"],"properties":{"message":{"type":"string"}}}`, `Echo "hello there"`, `{"message":"hello there"}`},
		{"echo", "Echoes a message.", `{"required":["message"],"properties":{"message":{"type":"string"}}}`, `echo hello`, `{"message":"hello"}`},
		{"add", "Adds two numbers.", `{"required":["a","b"],"properties":{"a":{"type":"number"},"b":{"type":"number"}}}`, "Add 2.5 and 40", `{"a":2.5,"b":40}`},
		{
			"report", "Report of a day.", `{"required":["day","verbose"],"properties":{"day":{"type":"string","format":"date"},"verbose":{"type":"boolean","default":false}}}`,
			"Report for 2026-03-01", `{"day":"2026-03-01","verbose":false}`,
		},
		{"orders_for_outlet", "Orders.", `{"required":["outlet_id"],"properties":{"outlet_id":{"type":"string"}}}`, "Orders of outlet o-3", `{"outlet_id":"o-3"}`},
		{"orders_for_outlet", "Orders.", `{"required":["outlet_id"],"properties":{"outlet_id":{"type":"string"}}}`, "Orders of the outlet in Berlin", ``},
	}
	for _, tt := range tests {
		s := Skill{Name: tt.name, Description: tt.description, InputSchema: json.RawMessage(tt.schema)}
		out := ask[ActionInput, ActionOutput](t, ChooseAction, ActionInput{Task: tt.task, UserTask: tt.task, Skills: []Skill{s}})
		if tt.want == "" {
			if out.Action != ActInsufficient || out.Reason == "" || out.Suggestion == "" {
				t.Errorf("%s: %+v", tt.task, out)
			}
			continue
		}
		if out.Action != ActCall || out.Skill != tt.name {
			t.Errorf("%s: %+v", tt.task, out)
			continue
		}
		sameJSON(t, json.RawMessage(tt.want), out.Input)
	}
}

func TestFillFromEarlierStep(t *testing.T) {
	rank := Skill{Name: "rank", Description: "Ranks rows.", InputSchema: readFile(t, "rank_input.json")}
	rows := json.RawMessage(`[{"place":"a","magnitude":2},{"place":"b","magnitude":3}]`)
	for _, task := range []string{
		"Call rank with the rows of step 1; arrange lowest magnitude first; return rank, place, magnitude.",
		"Rank the rows by magnitude in ascending order",
	} {
		out := ask[ActionInput, ActionOutput](t, ChooseAction, ActionInput{Task: task, Skills: []Skill{rank}, Input: rows})
		sameJSON(t, json.RawMessage(`{"rows":`+string(rows)+`,"by":"magnitude","descending":false}`), out.Input)
	}
}

func TestAfterCall(t *testing.T) {
	schema := compile(t, "array<{name: string}>")
	a, b := Skill{Name: "a"}, Skill{Name: "b"}
	tests := []struct {
		name string
		in   ActionInput
		want Action
	}{
		{"fits", ActionInput{Task: "Call a; return name.", Calls: []CallResult{{Skill: "a", Output: json.RawMessage(`[{"name":"x"}]`)}}}, ActFinish},
		{"fits, but a filter is left", ActionInput{Task: `Call a; keep name is "x"; return name.`, Calls: []CallResult{{Skill: "a", Output: json.RawMessage(`[{"name":"x"}]`)}}}, ActExtract},
		{"one member too many", ActionInput{Task: "Call a; return name.", Calls: []CallResult{{Skill: "a", Output: json.RawMessage(`[{"name":"x","n":1}]`)}}}, ActExtract},
		{"large", ActionInput{Calls: []CallResult{{Skill: "a", Large: true, SizeBytes: 60000}}}, ActExtract},
		{"refused as it was", ActionInput{Violations: []string{"no"}, Calls: []CallResult{{Skill: "a", Output: json.RawMessage(`[{"name":"x"}]`)}}}, ActExtract},
		{"nothing", ActionInput{Calls: []CallResult{{Skill: "a"}}}, ActInsufficient},
		{"error", ActionInput{Skills: []Skill{a}, Calls: []CallResult{{Skill: "a", Error: "down"}}}, ActInsufficient},
		{"error, another skill", ActionInput{Skills: []Skill{a, b}, Calls: []CallResult{{Skill: "a", Error: "down"}}}, ActCall},
		{"no skill, no input", ActionInput{}, ActInsufficient},
		{"no skill, input", ActionInput{Input: json.RawMessage(`[1]`)}, ActExtract},
		{"the call was refused", ActionInput{Skills: []Skill{a}, Violations: []string{"/by: missing"}}, ActInsufficient},
	}
	for _, tt := range tests {
		tt.in.Schema = schema
		out := ask[ActionInput, ActionOutput](t, ChooseAction, tt.in)
		if out.Action != tt.want || !strings.HasPrefix(string(out.Input), "{") {
			t.Errorf("%s: %+v", tt.name, out)
		}
	}
}
