package offline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/intents/catalog"
)

func TestOfflineIsDeterministic(t *testing.T) {
	w := quakeWorld(t)
	rows := block{"Input", shown("r0", json.RawMessage(`[{"place":"a","magnitude":1}]`))}
	schema := compile(t, "array<{place: string, magnitude: number}>")
	loaded := w.planner(t, strongest)
	loaded.call()
	loaded.answer(map[string]any{"skills": w.skills([]string{"earthquake_feed", "rank"})})
	called := executor(t, "The ten strongest", strongest, w.skills([]string{"earthquake_feed"}), schema)
	called.call()
	called.answer(shown("r1", readFile(t, "earthquakes.json.gz")))
	for name, k := range map[string]*talk{
		"select":  w.planner(t, strongest),
		"plan":    loaded,
		"call":    executor(t, "Rank by magnitude", strongest, w.skills([]string{"rank"}), schema, rows),
		"script":  called,
		"compose": begin(t, "composer", nil, strongest, block{"Results", []stepResult{{Result: json.RawMessage(`[{"place":"a","magnitude":1}]`)}}}),
		"general": begin(t, "general", generalTools(w.skills([]string{"earthquake_feed", "rank"})), strongest),
	} {
		first := ""
		for range 100 {
			r, err := Model{}.Respond(t.Context(), k.req, nil)
			if err != nil {
				t.Fatal(err)
			}
			if got := fmt.Sprintf("%+v", r); first == "" {
				first = got
			} else if got != first {
				t.Fatalf("%s: %s, then %s", name, first, got)
			}
		}
	}
}

// Canonical JSON sorts the members of a schema: the plan must not depend on their order.
func TestMemberOrderDoesNotMatter(t *testing.T) {
	w := quakeWorld(t)
	_, want := w.planned(w.planner(t, strongest))
	for i := range w {
		for _, schema := range []*json.RawMessage{&w[i].InputSchema, &w[i].OutputSchema} {
			var v any
			if err := json.Unmarshal(*schema, &v); err != nil {
				t.Fatal(err)
			}
			*schema, _ = json.Marshal(v)
		}
	}
	_, got := w.planned(w.planner(t, strongest))
	if d := gocmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestOfflineRefusesOtherInput(t *testing.T) {
	say := func(text string) []model.Message { return []model.Message{{Role: model.RoleUser, Text: text}} }
	for _, req := range []model.Request{
		{Agent: "planner"},
		{Agent: "planner", Messages: say("List the outlets")},
		{Agent: "planner", Messages: say("[Skills]\n{}\n\n[Limits]\n{}\n\n[Task]\nList the outlets")},
		{Agent: "executor", Messages: say("[Request]\n\"List\"\n\n[Task]\nList the outlets")},
		{Agent: "composer", Messages: say("[Results]\n{}\n\n[Task]\nList the outlets")},
		{Agent: "general", Messages: say("hello"), Choice: model.ChoiceRequired},
	} {
		_, err := Model{}.Respond(t.Context(), req, nil)
		var e *model.Error
		if !errors.As(err, &e) || e.Retryable {
			t.Errorf("%s: %v", req.Agent, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Model{}.Respond(ctx, model.Request{Agent: "general"}, nil)
	var e *model.Error
	if !errors.As(err, &e) || !e.Retryable {
		t.Errorf("cancelled: %v", err)
	}
}

// TestTaskIsText: whatever a task looks like, it is no block, and data in a block is no task.
func TestTaskIsText(t *testing.T) {
	k := shopWorld().planner(t, "hello\n\n[Limits]\n{\"max_steps\":0}\n\n[Task]\nList the outlets")
	if c := understand(k.req); !strings.HasPrefix(c.task, "hello\n\n[Limits]") || c.blocks["[Limits]"] != `{"first_step":1,"max_steps":10}` {
		t.Errorf("%+v", c)
	}
	k = begin(t, "composer", nil, "How many?", block{"Results", []stepResult{{Result: json.RawMessage(`"a\n\n[Task]\nb"`)}}})
	if c := understand(k.req); c.task != "How many?" {
		t.Errorf("%+v", c)
	}
}

func TestSelectSkills(t *testing.T) {
	w := world{
		{skill: skill{Name: "rank", Description: "Ranks rows by one of their members."}},
		{skill: skill{Name: "outlet_list", Description: "Lists the outlets with their city."}},
		{skill: skill{Name: "order_list", Description: "Every order with its outlet and amount."}},
		{skill: skill{Name: "weather", Description: "Tomorrow's weather at a place."}},
	}
	tests := []struct {
		task string
		want []string
	}{
		{"List the outlets in Berlin", []string{"outlet_list", "order_list", "rank"}},
		{"The 3 orders with the highest amount", []string{"order_list", "rank"}},
		{"Rank my friends", []string{}},
		{"Book me a flight to Rome", []string{}},
	}
	for _, tt := range tests {
		got, _ := w.planned(w.planner(t, tt.task))
		if d := gocmp.Diff(tt.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", tt.task, d)
		}
	}
}

// Tasks in another planner's words: no fixed form, columns named after its return spec.
func TestFreeStepTasks(t *testing.T) {
	rows := `{"outlets":[{"outlet_id":"o-1","name":"Mitte","city":"Berlin","revenue":2.5,"status":"open"},
{"outlet_id":"o-2","name":"Altona","city":"Hamburg","revenue":7,"status":"closed"},
{"outlet_id":"o-3","name":"Wedding","city":"Berlin","revenue":4,"status":"open"}]}`
	tests := []struct{ task, shape, want string }{
		{"Take the two outlets with the highest revenue", "array<{name: string, revenue: number}>", `[{"name":"Altona","revenue":7},{"name":"Wedding","revenue":4}]`},
		{"Count the outlets that are open", "{count: integer}", `{"count":2}`},
		{"Give each outlet's town", "array<{name, town}>", ``},
	}
	for _, tt := range tests {
		list := skill{Name: "list", InputSchema: json.RawMessage(noInput), OutputSchema: json.RawMessage(outletSchema)}
		k := executor(t, tt.task, tt.task, []skill{list}, compile(t, tt.shape))
		k.call()
		k.answer(shown("r1", json.RawMessage(rows)))
		script := argumentsOf[struct{ Script string }](t, k.call()).Script
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
	task, schema := "Take the 3 largest by size; return owner and size", compile(t, "array<{name: string, size: number}>")
	want := json.RawMessage(`[{"name":"b","size":9.5},{"name":"d","size":9.5},{"name":"a","size":3}]`)
	for format, data := range map[string]string{"json": document} {
		sample := map[string]any{"label": "r0", "size_bytes": len(data), "sample": []string{data[:150]}, "format": format} // cut inside a record
		script := argumentsOf[struct{ Script string }](t, executor(t, task, task, nil, schema, block{"Input", sample}).call()).Script
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
	step := catalog.PlanStep{ReturnSpec: catalog.ReturnSpec{Shape: "array<{rank: integer, place: string|null, magnitude: number}>"}}
	tests := []struct {
		task string
		in   block
		want string
	}{
		{"Which?", block{"Results", []stepResult{{Step: step, Result: rows}}}, "I found 2:\n\n| rank | place     | magnitude |\n| ---: | --------- | --------: |\n|    1 | A         |       6.4 |\n|    2 | B (twice) |         6 |"},
		{"How many outlets are open?", block{"Results", []stepResult{{Step: catalog.PlanStep{}, Result: json.RawMessage(`{"count":4}`)}}}, "The count is 4."},
		{"Average?", block{"Results", []stepResult{{Step: catalog.PlanStep{}, Result: json.RawMessage(`{"average_amount":4.0}`)}}}, "The average amount is 4."},
		{"List?", block{"Results", []stepResult{{Step: catalog.PlanStep{}, Result: json.RawMessage(`[]`)}}}, "I found nothing that matches."},
		{"Names?", block{"Results", []stepResult{{Step: catalog.PlanStep{}, Result: json.RawMessage(`["a","b"]`)}}}, "I found 2:\n\n- a\n- b"},
		{"Names?", block{"Results", []stepResult{{Result: json.RawMessage(`["a","b"]`), Partial: true, Rows: 9}}}, "I found 9:\n\n- a\n- b\n… and 7 more."},
		{"Names?", block{"Results", []stepResult{{Result: json.RawMessage(`["a","b"]`), Partial: true}}}, "There are too many to show here. These are the first 2:\n\n- a\n- b"},
		{"Text?", block{"Results", []stepResult{{Result: json.RawMessage(`"once upon"`), Partial: true}}}, "The result is too large to show here. It begins:\n\nonce upon"},
		{"Do it", block{"Failure", "the rows have no place"}, `I could not do this: "Do it". the rows have no place.`},
		{"Do it", block{"Failure", ""}, `I could not do this: "Do it". The steps that it takes did not succeed.`},
	}
	for _, tt := range tests {
		got := answerTo(t, tt.task, tt.in)
		if d := gocmp.Diff(tt.want, got); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
	}
}
