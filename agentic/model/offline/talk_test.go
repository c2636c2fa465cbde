package offline

import (
	"encoding/json"
	"strings"
	"testing"

	"aob.dev/writ/agentic/model"
)

// TestGeneral: an unknown agent calls a matching skill, and states the result.
func TestGeneral(t *testing.T) {
	tools := generalTools(argumentWorld().skills([]string{"forecast", "note_add"}))
	k := begin(t, "general", tools, `Weather forecast city="New York" days=3`)
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
		`Add "buy milk"`:             "must be named",
		`Weather forecast city=Oslo`: `Write for example "days=…"`,
		"Who won the election?":      "This is the offline model",
		"Read the lines":             "This is the offline model",
	} {
		if text, call := begin(t, "general", tools, task).next(); !strings.Contains(text, says) {
			t.Errorf("%s: %q %+v", task, text, call)
		}
	}
}

// TestGeneralComputes: the result of a call is filtered and counted only if scripts can run;
// otherwise nothing is shown beyond the request.
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
