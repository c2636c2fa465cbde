package offline

import (
	"encoding/json"
	"strings"
	"testing"

	"aob.dev/writ/agentic/model"
)

func TestSmallTalk(t *testing.T) {
	for task, says := range map[string]string{
		"hello": "Hello!", "Hi there!": "Hello!", "Good morning.": "Hello!",
		"thanks": "You are welcome.", "Thank you very much!": "You are welcome.",
		"Who are you?": "offline model", "Hello, what can you do?": "offline model",
	} {
		selected, plan := shopWorld().planned(shopWorld().planner(t, planInput{Task: task, FirstStep: 1, MaxSteps: 10}))
		if len(selected) > 0 || !strings.Contains(plan.Answer, says) {
			t.Errorf("%s: %v %+v", task, selected, plan)
		}
		if text, _ := begin(t, "general", nil, task).next(); !strings.Contains(text, says) {
			t.Errorf("%s: %q", task, text)
		}
	}
	// A greeting that goes on asks for something, and so does the name of a skill.
	for _, task := range []string{"Hello, how many outlets are there?", "hello outlets"} {
		if _, plan := shopWorld().planned(shopWorld().planner(t, planInput{Task: task, FirstStep: 1, MaxSteps: 10})); plan.Answer != "" {
			t.Errorf("%s: %+v", task, plan)
		}
	}
	w := world{{skill: skill{Name: "hello", Description: "Greets.", InputSchema: json.RawMessage(noInput), OutputSchema: json.RawMessage(`{"type":"object"}`), Effect: "pure"}}}
	if _, plan := w.planned(w.planner(t, planInput{Task: "hello", FirstStep: 1, MaxSteps: 10})); planSkills(plan) != "hello" {
		t.Errorf("%+v", plan)
	}
}

// TestGeneral: an agent that is not known calls what fits, and says the result.
func TestGeneral(t *testing.T) {
	tools := generalTools(argumentWorld().skills([]string{"forecast", "note_add"}))
	k := begin(t, "general", tools, "Weather forecast for New York for 3 days")
	call := k.call()
	if call.Name != "forecast" {
		t.Fatalf("%+v", call)
	}
	sameJSON(t, json.RawMessage(`{"city":"New York","days":3}`), json.RawMessage(call.Arguments))
	k.answer(map[string]any{"label": "r1", "result": json.RawMessage(call.Arguments)})
	if text, _ := k.next(); text != "Here is what I found:\n\n- city: New York\n- days: 3" {
		t.Errorf("%q", text)
	}

	// The message after it is a new one.
	k.req.Messages = append(k.req.Messages, model.Message{Role: model.RoleUser, Text: "note add text=\"buy milk\""})
	if call = k.call(); call.Name != "note_add" {
		t.Errorf("named, and not called: %+v", call)
	}
	k.answer(failure("down"))
	if text, _ := k.next(); !strings.HasPrefix(text, "I could not do this") || !strings.Contains(text, "down") {
		t.Errorf("%q", text)
	}

	for task, says := range map[string]string{
		`Add "buy milk"`:                "must be named",
		"Weather forecast for New York": `Write for example "days=…"`,
		"Who won the election?":         "This is the offline model",
		"Read the lines":                "This is the offline model",
	} {
		if text, call := begin(t, "general", tools, task).next(); !strings.Contains(text, says) {
			t.Errorf("%s: %q %+v", task, text, call)
		}
	}
}

// TestGeneralComputes: what a call returned is filtered and counted only where
// scripts can run; else nothing is shown that was not asked for.
func TestGeneralComputes(t *testing.T) {
	w := shopWorld()
	answer := func(k *talk) string {
		k.call()
		k.answer(shown("r1", must(respond(map[string]any{"outlets": outlets, "page": 1}))))
		text, call := k.next()
		if call.Name == "exec_python" {
			k.answer(map[string]any{"label": "r2", "result": map[string]int{"count": 4}})
			text, _ = k.next()
		}
		return text
	}
	tools := generalTools(w.skills([]string{"outlet_list"}))
	if text := answer(begin(t, "general", tools, "How many outlets are open?")); text != "The count is 4." {
		t.Errorf("%q", text)
	}
	if text := answer(begin(t, "general", tools[:1], "How many outlets are open?")); !strings.HasPrefix(text, "I could not") {
		t.Errorf("%q", text)
	}
	if text := answer(begin(t, "general", tools[:1], "List the outlets")); !strings.Contains(text, "Kreuzberg") {
		t.Errorf("%q", text)
	}
}

func must(raw json.RawMessage, err error) json.RawMessage {
	if err != nil {
		panic(err)
	}
	return raw
}
