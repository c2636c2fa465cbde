package offline

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/intents/catalog"
)

// FuzzOffline feeds arbitrary words, schemas and data through all agents:
// each answers or errs, and none panics.
func FuzzOffline(f *testing.F) {
	f.Add(strongest, `{"type":"array","items":{"type":"object","properties":{"mag":{"type":"number"}}}}`, `[{"mag":1}]`, "array<{mag: number}>")
	f.Add("How many orders per outlet?", orderSchema, `{"a":[{"b":null}]}`, "{count: integer}")
	f.Add("“Wo” 5 at least > between 1 and 2 top -3 'x' the most first", `{"$ref":"#","properties":{"a":{"$ref":"#/properties/a"}}}`, `[[1]]`, "number")
	f.Add("sorted by by by, how many how 1e999 2026-01-01", `{"anyOf":[{"type":"null"},{"allOf":[{"items":{}}]}]}`, "\xff{", "string")
	f.Add("the m", `{"properties":{"m":null,"o":{"properties":{"n":null}}},"$defs":{"d":null},"items":null}`, `null`, "{m: null}")
	f.Fuzz(func(t *testing.T, task, schema, data, desc string) {
		tools := []model.Tool{{Name: "s", Description: desc, Schema: json.RawMessage(schema)}, {Name: "t"}, toolNamed("exec_python"), toolNamed("write_memory")}
		s := skill{Name: task, Description: desc, InputSchema: json.RawMessage(schema), OutputSchema: json.RawMessage(schema)}
		rank := skill{Name: "rank", InputSchema: json.RawMessage(`{"required":["rows"],"properties":{"rows":{"type":"array","items":{"type":"object"}}}}`), OutputSchema: s.OutputSchema}
		selectSkills(task, []skill{s, {Name: desc, Description: task}, rank})
		for _, p := range writePlan(task, []skill{s, rank, {Name: desc, OutputSchema: s.OutputSchema}}, planInput{MaxSteps: 10}).Steps {
			x := execution{Task: p.Task, request: task, skills: []skill{s}, Schema: s.OutputSchema, input: exchange{Label: "r0", Result: json.RawMessage(data)}}
			x.next()
			x.calls = []exchange{{Call: model.Call{Name: task}, Result: json.RawMessage(data)}}
			x.next()
		}
		for _, agent := range []string{"planner", "executor", "composer", "general"} {
			text := "[Skills]\n[{\"name\":\"s\"}]\n\n[Limits]\n{\"max_steps\":3}\n\n[Returns]\n[{\"tool\":\"s\",\"schema\":" + schema + "}]\n\n[Request]\n\"a\"\n\n[Step]\n{\"return_schema\":" + schema + "}\n\n[Input]\n{\"result\":" + data + "}\n\n[Results]\n[{\"result\":" + data + "}]\n\n[Task]\n" + task
			for _, message := range []string{text, task, desc} {
				for _, name := range []string{"load_skill", "plan", "s", "exec_python", "write_memory", desc} {
					_, _ = Model{}.Respond(t.Context(), model.Request{Agent: agent, Tools: tools, Messages: []model.Message{
						{Role: model.RoleUser, Text: message},
						{Role: model.RoleAssistant, Calls: []model.Call{{ID: "1", Name: name, Arguments: data}}},
						{Role: model.RoleTool, CallID: "1", Text: data},
					}}, nil)
				}
			}
		}
		readFor(s, task, json.RawMessage(desc)).script(json.RawMessage(desc))
		readFor(skill{}, task, s.OutputSchema).script(s.OutputSchema)
		apology(task, desc)
		compose(stepResult{Step: catalog.PlanStep{Task: desc}, Result: json.RawMessage(data)})
	})
}

// TestSchemaThatHoldsItself: reading ends even if every member of a schema leads back to it.
func TestSchemaThatHoldsItself(t *testing.T) {
	members := ""
	for i := range 300 {
		members += fmt.Sprintf(`,"m%d":{"$ref":"#/$defs/a"}`, i)
	}
	s := skill{Name: "loop", OutputSchema: json.RawMessage(`{"$ref":"#/$defs/a","$defs":{"a":{"type":"object","properties":{` + members[1:] + `}}}}`)}
	for _, loop := range []string{`{"anyOf":[{"$ref":"#/$defs/a"},{"type":"null"}]}`, `{"$ref":"#/$defs/a"}`, `{"anyOf":[null,{"type":"null"}]}`} {
		tableOf(skill{OutputSchema: json.RawMessage(`{"type":"object","properties":{"x":{"$ref":"#/$defs/a"}},"$defs":{"a":` + loop + `}}`)})
	}
	task := strings.Repeat("the highest m1 ", 5000)
	if out := writePlan(task, []skill{s, s, s}, planInput{FirstStep: 1, MaxSteps: 10}); len(out.Steps) > 10 {
		t.Errorf("%d steps", len(out.Steps))
	}
	readFor(s, task, s.OutputSchema).script(s.OutputSchema)
}
