package model

import (
	"encoding/json"
	"testing"

	"aob.dev/writ/schemas"
)

// TestGoOutputsSatisfyTheirSchemas holds the types against the schemas: what a
// Go model writes, empty lists included, must pass.
func TestGoOutputsSatisfyTheirSchemas(t *testing.T) {
	step := Step{Step: 1, Task: "t", ReturnSpec: ReturnSpec{Shape: "string"}}
	later := Step{Step: 2, Task: "t", Skills: []string{"a"}, InputFromStep: 1, ReturnSpec: ReturnSpec{Shape: "string", Reason: "r"}}
	for p, outputs := range map[Purpose][]any{
		SelectSkills: {SelectOutput{}, SelectOutput{Skills: []string{"a"}}},
		WritePlan:    {PlanOutput{Reason: "no"}, PlanOutput{Feasible: true, Steps: []Step{step, later}}},
		ChooseAction: {
			ActionOutput{Action: ActFinish},
			ActionOutput{Action: ActCall, Skill: "s", Input: json.RawMessage(`{"a":1}`)},
			ActionOutput{Action: ActExtract},
			ActionOutput{Action: ActInsufficient, Reason: "r", Suggestion: "s"},
		},
		WriteScript: {ScriptOutput{Script: "print(1)"}},
		Compose:     {ComposeOutput{Response: "r"}},
	} {
		s, err := schemas.Compile(OutputSchema(p))
		if err != nil {
			t.Fatalf("%s: %v", p, err)
		}
		for _, out := range outputs {
			b, err := json.Marshal(out)
			if err != nil {
				t.Fatal(err)
			}
			if wrong := outputViolations(s, b); wrong != nil {
				t.Errorf("%s %s: %v", p, b, wrong)
			}
		}
	}
}

func TestSchemasRefuse(t *testing.T) {
	for p, docs := range map[Purpose][]string{
		SelectSkills: {`{"skills":["a","b","c","d","e","f","g"]}`, `{"Skills":[]}`, `[]`},
		WritePlan: {
			`{"feasible":true,"reason":"","steps":[{"step":0,"task":"t","skills":[],"return_spec":{"shape":"string","reason":""}}]}`,
			`{"feasible":true,"reason":"","steps":[{"step":1,"task":"t","skills":[],"return_spec":{"shape":"string","reason":"","strict":false}}]}`,
		},
		ChooseAction: {`{"action":"delete","skill":"","input":{},"reason":"","suggestion":""}`, `{"action":"call","skill":"s","input":[1],"reason":"","suggestion":""}`},
		WriteScript:  {`{"script":""}`},
		Compose:      {`{"response":""}`, `{"response":null}`},
	} {
		s, err := schemas.Compile(OutputSchema(p))
		if err != nil {
			t.Fatal(err)
		}
		for _, doc := range docs {
			if wrong := outputViolations(s, []byte(doc)); wrong == nil {
				t.Errorf("%s accepts %s", p, doc)
			}
		}
	}
	if OutputSchema("dream") != nil {
		t.Error("an unknown purpose has a schema")
	}
}

func TestLooseOutput(t *testing.T) {
	schema := json.RawMessage(`{"type":"object","properties":{"rows":{"type":"array","items":{"type":["object","null"]}},"text":{"type":"string"}}}`)
	for in, want := range map[string]string{
		`{"rows":["{\"a\":1.50}"," {} ",""],"text":"{}"}`: `{"rows":[{"a":1.50},{},{}],"text":"{}"}`,
		`{"rows":["[1]","{",{"a":1},7],"text":"a < b"}`:   `{"rows":["[1]","{",{"a":1},7],"text":"a < b"}`,
		`{"other":"{}"}`: `{"other":"{}"}`,
		`7`:              `7`,
	} {
		got, err := looseOutput(schema, json.RawMessage(in))
		if err != nil || string(got) != want {
			t.Errorf("%s: got %s, %v, want %s", in, got, err, want)
		}
	}
	for _, bad := range []string{``, `{`, `{} {}`, `words`} {
		if got, err := looseOutput(schema, json.RawMessage(bad)); err == nil {
			t.Errorf("%q became %s", bad, got)
		}
	}
}
