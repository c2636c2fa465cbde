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

// TestGeneralComputesNothing: an agent's skills declare no output to it, so a result is stated whole,
// and a question about a part of it is refused.
func TestGeneralComputesNothing(t *testing.T) {
	tools := generalTools(shopWorld().skills([]string{"outlet_list"}))
	k := begin(t, "general", tools, "List the outlets")
	k.call()
	k.answer(shown("r1", must(respond(map[string]any{"outlets": outlets, "page": 1}))))
	if text, _ := k.next(); !strings.Contains(text, "Kreuzberg") {
		t.Errorf("%q", text)
	}
	if text, call := begin(t, "general", tools, "How many outlets are open?").next(); !strings.HasPrefix(text, "I could not") {
		t.Errorf("%q %+v", text, call)
	}
}

func must(raw json.RawMessage, err error) json.RawMessage {
	if err != nil {
		panic(err)
	}
	return raw
}
