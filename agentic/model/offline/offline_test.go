package offline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"aob.dev/writ/agentic/model"
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

// TestSelectSkills: the first six of the candidates, which are sorted, and the ranker are loaded.
func TestSelectSkills(t *testing.T) {
	w := world{
		{skill: skill{Name: "outlet_list", Description: "Lists the outlets with their city."}},
		{skill: skill{Name: "order_list", Description: "Every order with its outlet and amount."}},
	}
	if got, _ := w.planned(w.planner(t, "List the outlets in Berlin")); !slices.Equal(got, []string{"outlet_list", "order_list"}) {
		t.Error(got)
	}
	for i := range 6 {
		w = append(w, tool{skill: skill{Name: fmt.Sprint("weather", i), Description: "Tomorrow's weather at a place."}})
	}
	w = append(w, tool{skill: skill{Name: "rank", Description: "Ranks rows by one of their members."}})
	if got, _ := w.planned(w.planner(t, "List the outlets in Berlin")); !slices.Equal(got, []string{"outlet_list", "order_list", "weather0", "weather1", "weather2", "weather3", "rank"}) {
		t.Error(got)
	}
}

// Tasks in another planner's words have no fixed form. What is not understood is not tried.
func TestFreeStepTasks(t *testing.T) {
	rows := `{"outlets":[{"outlet_id":"o-1","name":"Mitte","city":"Berlin","revenue":2.5,"status":"open"},
{"outlet_id":"o-2","name":"Altona","city":"Hamburg","revenue":7,"status":"closed"},
{"outlet_id":"o-3","name":"Wedding","city":"Berlin","revenue":4,"status":"open"}]}`
	tests := []struct{ task, shape, want string }{
		{"Get the two outlets with the highest revenue", "array<{name: string, revenue: number}>", `[{"name":"Altona","revenue":7},{"name":"Wedding","revenue":4}]`},
		{"Count the outlets that are open", "{count: integer}", `{"count":2}`},
		{"Give each outlet's town", "array<{name, town}>", ``},
	}
	for _, tt := range tests {
		list := skill{Name: "list", InputSchema: json.RawMessage(noInput), OutputSchema: json.RawMessage(outletSchema), Effect: "pure"}
		k := executor(t, tt.task, tt.task, []skill{list}, compile(t, tt.shape))
		if call := k.call(); tt.want == "" {
			if call.Name != "insufficient" {
				t.Errorf("%s: %+v", tt.task, call)
			}
			continue
		}
		k.answer(shown("r1", json.RawMessage(rows)))
		script := argumentsOf[struct{ Script string }](t, k.call()).Script
		got, err := python(t, script, []byte(rows))
		switch {
		case errors.Is(err, exec.ErrNotFound):
			continue
		case err != nil:
			t.Errorf("%s: %v\n%s", tt.task, err, script)
		default:
			sameJSON(t, json.RawMessage(tt.want), got)
		}
	}
}

func TestCompose(t *testing.T) {
	rows := json.RawMessage(`[{"magnitude":6.4,"place":"A","rank":1},{"magnitude":6,"place":"B (twice)","rank":2}]`)
	tests := []struct {
		task string
		in   block
		want string
	}{
		{"Which?", block{"Results", []stepResult{{Result: rows}}}, "I found 2:\n\n| magnitude | place     | rank |\n| --------: | --------- | ---: |\n|       6.4 | A         |    1 |\n|         6 | B (twice) |    2 |"},
		{"How many outlets are open?", block{"Results", []stepResult{{Result: json.RawMessage(`{"count":4}`)}}}, "The count is 4."},
		{"Average?", block{"Results", []stepResult{{Result: json.RawMessage(`{"average_amount":4.0}`)}}}, "The average amount is 4."},
		{"List?", block{"Results", []stepResult{{Result: json.RawMessage(`[]`)}}}, "I found nothing that matches."},
		{"Names?", block{"Results", []stepResult{{Result: json.RawMessage(`["a","b"]`)}}}, "I found 2:\n\n- a\n- b"},
		{"Names?", block{"Results", []stepResult{{Result: json.RawMessage(`["a","b"]`), Partial: true, Rows: 9}}}, "I found 9:\n\n- a\n- b\n… and 7 more."},
		{"Names?", block{"Results", []stepResult{{Result: json.RawMessage(`["a","b"]`), Partial: true}}}, "There are too many to show here. These are the first 2:\n\n- a\n- b"},
		{"Text?", block{"Results", []stepResult{{Result: json.RawMessage(`"once upon"`), Partial: true}}}, "The result is too large to show here. It begins:\n\nonce upon"},
		{"Do it", block{"Failure", "CONTRACT_VIOLATION: step_2 of plan_ab12 failed: the rows have no place.\nTraceback (most recent call last):\n  File \"x\", line 1"}, `I could not do this: "Do it". step 2 failed: the rows have no place.`},
		{"Do it", block{"Failure", "EXECUTOR_TIMEOUT"}, `I could not do this: "Do it". The steps that it takes did not succeed.`},
	}
	for _, tt := range tests {
		got := answerTo(t, tt.task, tt.in)
		if d := gocmp.Diff(tt.want, got); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
	}
}
