package offline

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"aob.dev/writ/agentic/model"
)

// FuzzOffline feeds arbitrary words, schemas and data through all thoughts:
// each answers or errs, and none panics.
func FuzzOffline(f *testing.F) {
	f.Add(strongest, `{"type":"array","items":{"type":"object","properties":{"mag":{"type":"number"}}}}`, `[{"mag":1}]`, "array<{mag: number}>")
	f.Add("How many orders per outlet?", orderSchema, `{"a":[{"b":null}]}`, "{count: integer}")
	f.Add("“Wo” 5 at least > between 1 and 2 top -3 'x' the most first", `{"$ref":"#","properties":{"a":{"$ref":"#/properties/a"}}}`, `[[1]]`, "number")
	f.Add("sorted by by by, how many how 1e999 2026-01-01", `{"anyOf":[{"type":"null"},{"allOf":[{"items":{}}]}]}`, "\xff{", "string")
	f.Fuzz(func(_ *testing.T, task, schema, data, desc string) {
		s := model.Skill{Name: task, Description: desc, InputSchema: json.RawMessage(schema), OutputSchema: json.RawMessage(schema)}
		selectSkills(model.SelectInput{Task: task, Candidates: []model.Candidate{{Name: task, Description: desc}, {Name: desc, Description: task}, {Name: "rank"}}})
		rank := model.Skill{Name: "rank", InputSchema: json.RawMessage(`{"required":["rows"],"properties":{"rows":{"type":"array","items":{"type":"object"}}}}`), OutputSchema: s.OutputSchema}
		plan := writePlan(model.PlanInput{Task: task, Skills: []model.Skill{s, rank, {Name: desc, OutputSchema: s.OutputSchema}}, MaxSteps: 10})
		for _, p := range plan.Steps {
			chooseAction(model.ActionInput{Task: p.Task, UserTask: task, Skills: []model.Skill{s}, Schema: s.OutputSchema, Input: json.RawMessage(data)})
		}
		chooseAction(model.ActionInput{Task: task, Skills: []model.Skill{s, rank}, Schema: s.OutputSchema, Input: json.RawMessage(data), Calls: []model.CallResult{{Output: json.RawMessage(data)}}})
		chooseAction(model.ActionInput{Task: desc, UserTask: task, Skills: []model.Skill{rank}, Input: json.RawMessage(data)})
		for _, format := range []string{"json", "jsonl"} {
			writeScript(model.ScriptInput{Task: task, UserTask: desc, Schema: json.RawMessage(desc), DataSchema: json.RawMessage(schema), Sample: []string{data, desc}, Format: format, Error: desc})
			writeScript(model.ScriptInput{Task: task, Schema: json.RawMessage(schema), Sample: []string{data}, Format: format})
		}
		compose(model.ComposeInput{Task: task, Failure: desc})
		compose(model.ComposeInput{Task: task, Results: []model.StepResult{{Step: model.Step{Task: desc}, Result: json.RawMessage(data)}}})
	})
}

// TestSchemaThatHoldsItself: reading ends, also where every member of a schema
// leads back to it.
func TestSchemaThatHoldsItself(t *testing.T) {
	members := ""
	for i := range 300 {
		members += fmt.Sprintf(`,"m%d":{"$ref":"#/$defs/a"}`, i)
	}
	s := model.Skill{Name: "loop", OutputSchema: json.RawMessage(`{"$ref":"#/$defs/a","$defs":{"a":{"type":"object","properties":{` + members[1:] + `}}}}`), Effect: "pure"}
	for _, loop := range []string{`{"anyOf":[{"$ref":"#/$defs/a"},{"type":"null"}]}`, `{"$ref":"#/$defs/a"}`, `{"anyOf":[null,{"type":"null"}]}`} {
		tableOf(model.Skill{OutputSchema: json.RawMessage(`{"type":"object","properties":{"x":{"$ref":"#/$defs/a"}},"$defs":{"a":` + loop + `}}`)})
	}
	task := strings.Repeat("the highest m1 ", 5000)
	if out := writePlan(model.PlanInput{Task: task, Skills: []model.Skill{s, s, s}, FirstStep: 1, MaxSteps: 10}); len(out.Steps) > 10 {
		t.Errorf("%d steps", len(out.Steps))
	}
	writeScript(model.ScriptInput{Task: task, DataSchema: s.OutputSchema, Schema: s.OutputSchema})
}
