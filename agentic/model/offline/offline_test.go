package offline

import (
	"context"
	"encoding/json"
	"errors"
	"os/exec"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"aob.dev/writ/agentic/model"
)

func TestOfflineIsDeterministic(t *testing.T) {
	w := quakeWorld(t)
	skills := w.skills([]string{"earthquake_feed", "rank"})
	requests := map[model.Purpose]any{
		model.SelectSkills: model.SelectInput{Task: strongest, Candidates: []model.Candidate{{Name: skills[0].Name, Description: skills[0].Description}, {Name: skills[1].Name, Description: skills[1].Description}}},
		model.WritePlan:    model.PlanInput{Task: strongest, Skills: skills, FirstStep: 1, MaxSteps: 10},
		model.ChooseAction: model.ActionInput{Task: "Rank by magnitude", UserTask: strongest, Skills: skills[1:], Input: json.RawMessage(`[{"place":"a","magnitude":1}]`)},
		model.WriteScript: model.ScriptInput{
			Task: "The ten strongest", UserTask: strongest, Format: "json", DataSchema: skills[0].OutputSchema,
			Schema: compile(t, "array<{place: string, magnitude: number}>"), Sample: sampleOf(readFile(t, "earthquakes.json.gz")),
		},
		model.Compose: model.ComposeInput{Task: strongest, Results: []model.StepResult{{Step: model.Step{}, Result: json.RawMessage(`[{"place":"a","magnitude":1}]`)}}},
	}
	for purpose, in := range requests {
		raw, err := json.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		first := ""
		for range 100 {
			r, err := Model{}.Complete(t.Context(), model.Request{Purpose: purpose, Input: raw})
			if err != nil {
				t.Fatal(err)
			}
			if first == "" {
				first = string(r.Output)
			}
			if string(r.Output) != first {
				t.Fatalf("%s: %s, then %s", purpose, first, r.Output)
			}
		}
	}
}

// A schema that travelled through canonical JSON has its members sorted: the
// plan must not depend on their order.
func TestMemberOrderDoesNotMatter(t *testing.T) {
	w := quakeWorld(t)
	skills := w.skills([]string{"earthquake_feed", "rank"})
	in := model.PlanInput{Task: strongest, Skills: skills, FirstStep: 1, MaxSteps: 10}
	want := ask[model.PlanInput, model.PlanOutput](t, model.WritePlan, in)
	for i, s := range skills {
		for _, schema := range []*json.RawMessage{&s.InputSchema, &s.OutputSchema} {
			var v any
			if err := json.Unmarshal(*schema, &v); err != nil {
				t.Fatal(err)
			}
			*schema, _ = json.Marshal(v)
		}
		skills[i] = s
	}
	if d := gocmp.Diff(want, ask[model.PlanInput, model.PlanOutput](t, model.WritePlan, in)); d != "" {
		t.Error(d)
	}
}

func TestOfflineRefusesOtherInput(t *testing.T) {
	for _, req := range []model.Request{
		{Purpose: "dream", Input: json.RawMessage(`{}`)},
		{Purpose: model.WritePlan, Input: json.RawMessage(`[]`)},
		{Purpose: model.Compose},
	} {
		_, err := Model{}.Complete(t.Context(), req)
		var e *model.Error
		if !errors.As(err, &e) || e.Retryable {
			t.Errorf("%s: %v", req.Purpose, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Model{}.Complete(ctx, model.Request{Purpose: model.Compose, Input: json.RawMessage(`{}`)})
	var e *model.Error
	if !errors.As(err, &e) || !e.Retryable {
		t.Errorf("cancelled: %v", err)
	}
}

func TestSelectSkills(t *testing.T) {
	candidates := []model.Candidate{
		{Name: "rank", Description: "Ranks rows by one of their members."},
		{Name: "outlet_list", Description: "Lists the outlets with their city."},
		{Name: "order_list", Description: "Every order with its outlet and amount."},
		{Name: "weather", Description: "Tomorrow's weather at a place."},
	}
	tests := []struct {
		task string
		want []string
	}{
		{"List the outlets in Berlin", []string{"outlet_list", "order_list"}},
		{"The 3 orders with the highest amount", []string{"order_list", "rank"}},
		{"Rank my friends", []string{}},
		{"Book me a flight to Rome", []string{}},
	}
	for _, tt := range tests {
		got := ask[model.SelectInput, model.SelectOutput](t, model.SelectSkills, model.SelectInput{Task: tt.task, Candidates: candidates}).Skills
		if d := gocmp.Diff(tt.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", tt.task, d)
		}
	}
}

// Another planner's words: no fixed form, columns named as its return spec likes.
func TestFreeStepTasks(t *testing.T) {
	rows := `{"outlets":[{"outlet_id":"o-1","name":"Mitte","city":"Berlin","revenue":2.5,"status":"open"},
{"outlet_id":"o-2","name":"Altona","city":"Hamburg","revenue":7,"status":"closed"},
{"outlet_id":"o-3","name":"Wedding","city":"Berlin","revenue":4,"status":"open"}]}`
	tests := []struct{ task, shape, want string }{
		{"Take the two outlets with the highest revenue", "array<{name: string, revenue: number}>", `[{"name":"Altona","revenue":7},{"name":"Wedding","revenue":4}]`},
		{"Collect the ids of the outlets in Berlin", "array<string>", `["o-1","o-3"]`},
		{"Count the outlets that are open", "{count: integer}", `{"count":2}`},
		{"Count the outlets", "integer", `3`},
		{"Get the total revenue", "number", `13.5`},
		{"Number the outlets by revenue, highest first", "array<{position: integer, name}>", `[{"position":1,"name":"Altona"},{"position":2,"name":"Wedding"},{"position":3,"name":"Mitte"}]`},
		{"List outlet names under one member", "{names: array<string>}", `{"names":["Mitte","Altona","Wedding"]}`},
		{"Give each outlet's town", "array<{name, town}>", ``},
	}
	for _, tt := range tests {
		in := model.ScriptInput{Task: tt.task, ReturnSpec: model.ReturnSpec{Shape: tt.shape}, Schema: compile(t, tt.shape), Format: "json", DataSchema: json.RawMessage(outletSchema), Sample: sampleOf([]byte(rows))}
		script := ask[model.ScriptInput, model.ScriptOutput](t, model.WriteScript, in).Script
		got, err := python(t, script, []byte(rows))
		switch {
		case errors.Is(err, exec.ErrNotFound):
			continue
		case tt.want == "":
			if err == nil || !strings.Contains(err.Error(), "no field for town") {
				t.Errorf("%s: %s %v", tt.task, got, err)
			}
		case err != nil:
			t.Errorf("%s: %v\n%s", tt.task, err, script)
		default:
			sameJSON(t, json.RawMessage(tt.want), got)
		}
	}
}

func TestScriptWithoutSchema(t *testing.T) {
	lines := `{"id": 1, "tags": ["x"], "size": 3, "owner": {"name": "a"}}
{"id": 2, "tags": [], "size": 9.5, "owner": {"name": "b"}}
{"id": 3, "tags": null, "size": null, "owner": {"name": "c"}}
{"id": 4, "size": 9.5, "owner": {"name": "d"}}`
	document := `{"meta": {"page": 1}, "found": [` + strings.ReplaceAll(lines, "\n", ",\n") + `]}`
	in := model.ScriptInput{Task: "Take the 3 largest by size; return owner and size", Schema: compile(t, "array<{name: string, size: number}>")}
	want := json.RawMessage(`[{"name":"b","size":9.5},{"name":"d","size":9.5},{"name":"a","size":3}]`)
	for format, data := range map[string]string{"jsonl": lines, "json": document} {
		in.Format, in.Sample = format, []string{data[:150]} // cut inside a record
		script := ask[model.ScriptInput, model.ScriptOutput](t, model.WriteScript, in).Script
		got, err := python(t, script, []byte(data))
		if errors.Is(err, exec.ErrNotFound) {
			continue
		}
		if err != nil {
			t.Errorf("%s: %v\n%s", format, err, script)
			continue
		}
		sameJSON(t, want, got)
	}
}

func TestCompose(t *testing.T) {
	rows := json.RawMessage(`[{"magnitude":6.4,"place":"A","rank":1},{"magnitude":6,"place":"B (twice)","rank":2}]`)
	step := model.Step{ReturnSpec: model.ReturnSpec{Shape: "array<{rank: integer, place: string|null, magnitude: number}>"}}
	tests := []struct {
		in   model.ComposeInput
		want string
	}{
		{model.ComposeInput{Task: "Which?", Results: []model.StepResult{{Step: step, Result: rows}}}, "I found 2:\n\n| rank | place     | magnitude |\n| ---: | --------- | --------: |\n|    1 | A         |       6.4 |\n|    2 | B (twice) |         6 |"},
		{model.ComposeInput{Task: "How many outlets are open?", Results: []model.StepResult{{Step: model.Step{}, Result: json.RawMessage(`{"count":4}`)}}}, "The count is 4."},
		{model.ComposeInput{Task: "Average?", Results: []model.StepResult{{Step: model.Step{}, Result: json.RawMessage(`{"average_amount":4.0}`)}}}, "The average amount is 4."},
		{model.ComposeInput{Task: "List?", Results: []model.StepResult{{Step: model.Step{}, Result: json.RawMessage(`[]`)}}}, "I found nothing that matches."},
		{model.ComposeInput{Task: "Names?", Results: []model.StepResult{{Step: model.Step{}, Result: json.RawMessage(`["a","b"]`)}}}, "I found 2:\n\n- a\n- b"},
		{model.ComposeInput{Task: "Names?", Results: []model.StepResult{{Result: json.RawMessage(`["a","b"]`), Partial: true, Rows: 9}}}, "I found 9:\n\n- a\n- b\n… and 7 more."},
		{model.ComposeInput{Task: "Names?", Results: []model.StepResult{{Result: json.RawMessage(`["a","b"]`), Partial: true}}}, "There are too many to show here. These are the first 2:\n\n- a\n- b"},
		{model.ComposeInput{Task: "Text?", Results: []model.StepResult{{Result: json.RawMessage(`"once upon"`), Partial: true}}}, "The result is too large to show here. It begins:\n\nonce upon"},
		{model.ComposeInput{Task: "Do it", Failure: "CONTRACT_VIOLATION: step_2 of plan_ab12 failed: the rows have no place.\nTraceback (most recent call last):\n  File \"x\", line 1"}, `I could not do this: "Do it". step 2 failed: the rows have no place.`},
		{model.ComposeInput{Task: "Do it", Failure: "EXECUTOR_TIMEOUT"}, `I could not do this: "Do it". The steps that it takes did not succeed.`},
	}
	for _, tt := range tests {
		got := ask[model.ComposeInput, model.ComposeOutput](t, model.Compose, tt.in).Response
		if d := gocmp.Diff(tt.want, got); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
	}
}
