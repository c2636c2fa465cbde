package offline

import (
	"encoding/json"
	"strings"
	"testing"

	"aob.dev/writ/agentic/model"
)

func TestFillFromTask(t *testing.T) {
	tests := []struct{ name, description, schema, task, want string }{
		{
			"forecast", "Weather forecast of a city.", `{"required":["city","days"],"properties":{"city":{"type":"string"},"days":{"type":"integer"},"unit":{"enum":["celsius","kelvin"]}}}`,
			"What is the weather forecast for New York for 3 days, unit=kelvin?", `{"city":"New York","days":3,"unit":"kelvin"}`,
		},
		{"echo", "Echoes a message.", `{"required":["message"],"properties":{"message":{"type":"string"}}}`, `Echo "hello there"`, `{"message":"hello there"}`},
		{"echo", "Echoes a message.", `{"required":["message"],"properties":{"message":{"type":"string"}}}`, `echo message=hello`, `{"message":"hello"}`},
		{"add", "Adds two numbers.", `{"required":["a","b"],"properties":{"a":{"type":"number"},"b":{"type":"number"}}}`, "Add 2.5 and 40", `{"a":2.5,"b":40}`},
		{
			"report", "Report of a day.", `{"required":["day","verbose"],"properties":{"day":{"type":"string","format":"date"},"verbose":{"type":"boolean","default":false}}}`,
			"Report for 2026-03-01", `{"day":"2026-03-01","verbose":false}`,
		},
		{"orders_for_outlet", "Orders.", `{"required":["outlet_id"],"properties":{"outlet_id":{"type":"string"}}}`, "Orders of outlet o-3", `{"outlet_id":"o-3"}`},
		{"orders_for_outlet", "Orders.", `{"required":["outlet_id"],"properties":{"outlet_id":{"type":"string"}}}`, "Orders of the outlet in Berlin", ``},
	}
	for _, tt := range tests {
		s := model.Skill{Name: tt.name, Description: tt.description, InputSchema: json.RawMessage(tt.schema), Effect: "pure"}
		out := ask[model.ActionInput, model.ActionOutput](t, model.ChooseAction, model.ActionInput{Task: tt.task, UserTask: tt.task, Skills: []model.Skill{s}})
		if tt.want == "" {
			if out.Action != model.ActInsufficient || out.Reason == "" || out.Suggestion == "" {
				t.Errorf("%s: %+v", tt.task, out)
			}
			continue
		}
		if out.Action != model.ActCall || out.Skill != tt.name {
			t.Errorf("%s: %+v", tt.task, out)
			continue
		}
		sameJSON(t, json.RawMessage(tt.want), out.Input)
	}
}

func TestFillFromEarlierStep(t *testing.T) {
	rank := model.Skill{Name: "rank", Description: "Ranks rows.", InputSchema: readFile(t, "rank_input.json"), Effect: "pure"}
	rows := json.RawMessage(`[{"place":"a","magnitude":2},{"place":"b","magnitude":3}]`)
	for _, task := range []string{
		"Rank the rows by magnitude, lowest first",
		"Rank the rows by magnitude in ascending order",
	} {
		out := ask[model.ActionInput, model.ActionOutput](t, model.ChooseAction, model.ActionInput{Task: task, Skills: []model.Skill{rank}, Schema: compile(t, "array<{rank: integer, place: string, magnitude: number}>"), Input: rows})
		sameJSON(t, json.RawMessage(`{"rows":`+string(rows)+`,"by":"magnitude","descending":false}`), out.Input)
	}
}

func TestAfterCall(t *testing.T) {
	schema := compile(t, "array<{name: string}>")
	a := model.Skill{Name: "a", Effect: "pure"}
	tests := []struct {
		name string
		in   model.ActionInput
		want model.Action
	}{
		{"fits", model.ActionInput{Task: "List the names", Calls: []model.CallResult{{Skill: "a", Output: json.RawMessage(`[{"name":"x"}]`)}}}, model.ActFinish},
		{"fits, but a filter is left", model.ActionInput{Task: `List those with the name "x"`, Calls: []model.CallResult{{Skill: "a", Output: json.RawMessage(`[{"name":"x"}]`)}}}, model.ActExtract},
		{"one member too many", model.ActionInput{Task: "List the names", Calls: []model.CallResult{{Skill: "a", Output: json.RawMessage(`[{"name":"x","n":1}]`)}}}, model.ActExtract},
		{"large", model.ActionInput{Calls: []model.CallResult{{Skill: "a", Large: true, SizeBytes: 60000}}}, model.ActExtract},
		{"refused as it was", model.ActionInput{Violations: []string{"no"}, Calls: []model.CallResult{{Skill: "a", Output: json.RawMessage(`[{"name":"x"}]`)}}}, model.ActExtract},
		{"nothing", model.ActionInput{Calls: []model.CallResult{{Skill: "a"}}}, model.ActInsufficient},
		{"error", model.ActionInput{Skills: []model.Skill{a}, Calls: []model.CallResult{{Skill: "a", Error: "down"}}}, model.ActInsufficient},
		{"no skill, no input", model.ActionInput{}, model.ActInsufficient},
		{"no skill, input", model.ActionInput{Input: json.RawMessage(`[1]`)}, model.ActExtract},
		{"the call was refused", model.ActionInput{Skills: []model.Skill{a}, Violations: []string{"/by: missing"}}, model.ActInsufficient},
	}
	for _, tt := range tests {
		tt.in.Schema = schema
		out := ask[model.ActionInput, model.ActionOutput](t, model.ChooseAction, tt.in)
		if out.Action != tt.want || !strings.HasPrefix(string(out.Input), "{") {
			t.Errorf("%s: %+v", tt.name, out)
		}
	}
}
