package model

import (
	"encoding/json"
	"testing"
)

// FuzzOffline feeds arbitrary words, schemas and data through all thoughts:
// each answers or errs, none panics, and steps always read back.
func FuzzOffline(f *testing.F) {
	f.Add(strongest, `{"type":"array","items":{"type":"object","properties":{"mag":{"type":"number"}}}}`, `[{"mag":1}]`, "array<{mag: number}>")
	f.Add("How many orders per outlet?", orderSchema, `{"a":[{"b":null}]}`, "{count: integer}")
	f.Add("“Wo” 5 at least > between 1 and 2 top -3 'x' the most first", `{"$ref":"#","properties":{"a":{"$ref":"#/properties/a"}}}`, `[[1]]`, "number")
	f.Add("sorted by by by, how many how 1e999 2026-01-01", `{"anyOf":[{"type":"null"},{"allOf":[{"items":{}}]}]}`, "\xff{", "string")
	f.Fuzz(func(t *testing.T, task, schema, data, desc string) {
		s := Skill{Name: task, Description: desc, InputSchema: json.RawMessage(schema), OutputSchema: json.RawMessage(schema)}
		selectSkills(SelectInput{task, []Candidate{{task, desc}, {desc, task}, {"rank", ""}}})
		rank := Skill{Name: "rank", InputSchema: json.RawMessage(`{"required":["rows"],"properties":{"rows":{"type":"array","items":{"type":"object"}}}}`), OutputSchema: s.OutputSchema}
		plan := writePlan(PlanInput{Task: task, Skills: []Skill{s, rank, {Name: desc, OutputSchema: s.OutputSchema}}, MaxSteps: 10})
		for _, p := range plan.Steps {
			if _, ok := readQuery(p.Task); !ok && identifier(task) && identifier(desc) {
				t.Errorf("%q does not read back", p.Task)
			}
			chooseAction(ActionInput{Task: p.Task, UserTask: task, Skills: []Skill{s}, Schema: s.OutputSchema, Input: json.RawMessage(data)})
		}
		chooseAction(ActionInput{Task: task, Skills: []Skill{s, rank}, Schema: s.OutputSchema, Input: json.RawMessage(data), Calls: []CallResult{{Output: json.RawMessage(data)}}})
		chooseAction(ActionInput{Task: desc, UserTask: task, Skills: []Skill{rank}, Input: json.RawMessage(data)})
		for _, format := range []string{"json", "jsonl"} {
			writeScript(ScriptInput{Task: task, UserTask: desc, Schema: json.RawMessage(desc), DataSchema: json.RawMessage(schema), Sample: []string{data, desc}, Format: format, Error: desc})
			writeScript(ScriptInput{Task: task, Schema: json.RawMessage(schema), Sample: []string{data}, Format: format})
		}
		compose(ComposeInput{Task: task, Failure: desc})
		compose(ComposeInput{Task: task, Results: []StepResult{{Step: Step{Task: desc}, Result: json.RawMessage(data)}}})
	})
}
