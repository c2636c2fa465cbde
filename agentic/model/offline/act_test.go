package offline

import (
	"encoding/json"
	"strings"
	"testing"

	"aob.dev/writ/agentic/model"
)

func TestArgumentsOfTask(t *testing.T) {
	tests := []struct{ name, description, schema, task, want string }{
		{
			"forecast", "Weather forecast of a city.", `{"required":["city","days"],"properties":{"city":{"type":"string"},"days":{"type":"integer"},"unit":{"enum":["celsius","kelvin"]}}}`,
			`What is the weather forecast city="New York" days=3 unit=kelvin?`, `{"city":"New York","days":3,"unit":"kelvin"}`,
		},
		{"echo", "Echoes a message.", `{"required":["message"],"properties":{"message":{"type":"string"}}}`, `echo message=hello`, `{"message":"hello"}`},
		{"add", "Adds two numbers.", `{"required":["a","b"],"properties":{"a":{"type":"number"},"b":{"type":"number"}}}`, "Add a=2.5 and b=40", `{"a":2.5,"b":40}`},
		{
			"report", "Report of a day.", `{"required":["day","verbose"],"properties":{"day":{"type":"string","format":"date"},"verbose":{"type":"boolean","default":false}}}`,
			"Report day=2026-03-01", `{"day":"2026-03-01","verbose":false}`,
		},
		{"orders_for_outlet", "Orders.", `{"required":["outlet_id"],"properties":{"outlet_id":{"type":"string"}}}`, "Orders of the outlet in Berlin", ``},
	}
	for _, tt := range tests {
		s := skill{Name: tt.name, Description: tt.description, InputSchema: json.RawMessage(tt.schema)}
		call := executor(t, tt.task, tt.task, []skill{s}, nil).call()
		if tt.want == "" {
			if why := argumentsOf[lack](t, call); call.Name != "insufficient" || why.Reason == "" || why.Suggestion == "" {
				t.Errorf("%s: %+v", tt.task, call)
			}
			continue
		}
		if call.Name != tt.name {
			t.Errorf("%s: %+v", tt.task, call)
			continue
		}
		sameJSON(t, json.RawMessage(tt.want), json.RawMessage(call.Arguments))
	}
}

func TestRankerGetsRows(t *testing.T) {
	rank := skill{Name: "rank", Description: "Ranks rows.", InputSchema: readFile(t, "rank_input.json")}
	rows := json.RawMessage(`[{"place":"a","magnitude":2},{"place":"b","magnitude":3}]`)
	for _, task := range []string{
		"Rank the rows by magnitude, lowest first",
		"Rank the rows by magnitude in ascending order",
	} {
		schema := compile(t, "array<{rank: integer, place: string, magnitude: number}>")
		call := executor(t, task, task, []skill{rank}, schema, block{"Input", shown("r0", rows)}).call()
		sameJSON(t, json.RawMessage(`{"rows":`+string(rows)+`,"by":"magnitude","descending":false}`), json.RawMessage(call.Arguments))
	}
	// Rows that are too many to show cannot be passed to a skill.
	call := executor(t, "Rank the rows by magnitude", "", []skill{rank}, nil, block{"Input", map[string]any{"label": "r0", "size_bytes": 60000, "sample": []string{`[{"place":"a"},`}}}).call()
	if call.Name != "insufficient" {
		t.Errorf("%+v", call)
	}
}

func TestAfterCall(t *testing.T) {
	schema := compile(t, "array<{name: string}>")
	skills := []skill{{Name: "srv.a"}}
	names := map[string]any{"label": "r1", "result": json.RawMessage(`[{"name":"x"}]`)}
	tests := []struct {
		name    string
		task    string
		results []any // of consecutive calls
		want    string
	}{
		{"fits", "List the names", []any{names}, `write_memory {"from":"r1"}`},
		{"fits, but a filter is left", `List those with the name "x"`, []any{names}, "exec_python"},
		{"one member too many", "List the names", []any{map[string]any{"label": "r1", "result": json.RawMessage(`[{"name":"x","n":1}]`)}}, "exec_python"},
		{"large", "", []any{map[string]any{"label": "r1", "size_bytes": 60000, "sample": []string{"["}}}, "exec_python"},
		{"refused as it was", "List the names", []any{names, map[string]any{"violations": []string{"/: no"}}}, "exec_python"},
		{"nothing", "", []any{map[string]any{"label": "r1"}}, "insufficient"},
		{"not even a result", "", []any{"sorry"}, "insufficient"},
		{"error", "", []any{failure("down")}, `insufficient {"reason":"srv_a could not be used: EXECUTOR_FAILED: down.","suggestion":"Try another skill."}`},
		{"a script's result", "The name", []any{map[string]any{"label": "r1", "result": 1}, map[string]any{"label": "r2", "result": json.RawMessage(`[]`)}}, `write_memory {"from":"r2"}`},
		{"a script's large result", "The name", []any{map[string]any{"label": "r1", "result": 1}, map[string]any{"label": "r2", "size_bytes": 60000}}, `write_memory {"from":"r2"}`},
		{"a script's result is refused", "The name", []any{map[string]any{"label": "r1", "result": 1}, map[string]any{"label": "r2", "result": 2}, map[string]any{"violations": []string{"/: is no array"}}}, `insufficient {"reason":"no script gave the result that return_spec asks for: /: is no array.","suggestion":"ask for less, or for another shape"}`},
		{"a script fails", "The name", []any{map[string]any{"label": "r1", "result": 1}, failure("KeyError")}, `insufficient {"reason":"no script gave the result that return_spec asks for: EXECUTOR_FAILED: KeyError.","suggestion":"ask for less, or for another shape"}`},
	}
	for _, tt := range tests {
		k := executor(t, tt.task, tt.task, skills, schema)
		call := k.call()
		for i, r := range tt.results {
			if i == 0 && call.Name != "srv_a" {
				t.Errorf("%s: %+v", tt.name, call)
			}
			k.answer(r)
			call = k.call()
		}
		if !strings.HasPrefix(call.Name+" "+call.Arguments, tt.want) {
			t.Errorf("%s: %+v", tt.name, call)
		}
	}
}

func TestStepWithoutSkill(t *testing.T) {
	if call := executor(t, "Count", "", nil, nil).call(); call.Name != "insufficient" {
		t.Errorf("no skill, no input: %+v", call)
	}
	call := executor(t, "Count", "", nil, nil, block{"Input", shown("r0", json.RawMessage(`[1]`))}).call()
	if args := argumentsOf[map[string]string](t, call); call.Name != "exec_python" || args["from"] != "r0" {
		t.Errorf("no skill, input: %+v", call)
	}
}

// TestLastRequest: with the output tools alone the step is not done.
func TestLastRequest(t *testing.T) {
	k := executor(t, "List the names", "", []skill{{Name: "a"}}, compile(t, "array<{name: string}>"))
	k.req.Tools = []model.Tool{toolNamed("write_memory"), toolNamed("insufficient")}
	if call := k.call(); call.Name != "insufficient" {
		t.Errorf("%+v", call)
	}
	p := world{{skill: skill{Name: "name_list", Description: "Lists the names."}}}.planner(t, "List the names")
	p.req.Tools = []model.Tool{toolNamed("plan")}
	if out := argumentsOf[planOutput](t, p.call()); out.Infeasible == "" {
		t.Errorf("%+v", out)
	}
}
