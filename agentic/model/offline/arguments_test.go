package offline

import (
	"encoding/json"
	"strings"
	"testing"
)

// argumentWorld has skills that return one record each.
func argumentWorld() world {
	echo := func(in json.RawMessage) (json.RawMessage, error) { return in, nil }
	return world{
		{
			skill{
				Name: "forecast", Description: "Weather forecast of a city.",
				InputSchema:  json.RawMessage(`{"required":["city","days"],"properties":{"city":{"type":"string"},"days":{"type":"integer"},"unit":{"enum":["celsius","kelvin"]}}}`),
				OutputSchema: json.RawMessage(`{"type":"object","required":["city","days"],"properties":{"city":{"type":"string"},"days":{"type":"integer"}}}`),
			}, echo,
		},
		{
			skill{
				Name: "note_add", Description: "Adds a note.", Changes: true,
				InputSchema:  json.RawMessage(`{"required":["text"],"properties":{"text":{"type":"string"}}}`),
				OutputSchema: json.RawMessage(`{"type":"object","required":["text"],"properties":{"text":{"type":"string"}}}`),
			}, echo,
		},
	}
}

// TestArguments: a word read as an argument is read as nothing else, from the plan to the script.
func TestArguments(t *testing.T) {
	for task, want := range map[string]string{
		`Weather forecast city="New York" days=3`:                `{"city":"New York","days":3}`,
		`note add text="buy milk; then call 3 Friends"`:          `{"text":"buy milk; then call 3 Friends"}`,
		`Please note_add text="How many outlets are in Berlin?"`: `{"text":"How many outlets are in Berlin?"}`,
		`Show the city of the forecast city="Bad Ems" days=1`:    `{"city":"Bad Ems"}`,
	} {
		o := argumentWorld().turn(t, task)
		if o.plan.Infeasible != "" || o.failed != nil {
			t.Errorf("%s: %s %+v", task, o.plan.Infeasible, o.failed)
		} else if !o.partial {
			sameJSON(t, json.RawMessage(want), o.results[0].Result)
		}
	}
	for task, says := range map[string]string{
		"Weather forecast for New York":                `Write for example "city=…"`,
		"forecast city=Rome days=2 hours=4":            `no argument "hours"`,
		"forecast city=Rome days=many":                 `cannot take "many" as days`,
		"forecast city=Rome days=2 without any clouds": `"without", "clouds"`,
		`Add text="buy milk"`:                          "must be named",
	} {
		if o := argumentWorld().turn(t, task); o.plan.Infeasible == "" || !strings.Contains(o.answer, says) {
			t.Errorf("%s: %q %+v", task, o.answer, o.plan.Steps)
		}
	}
}

// TestNothingDeclared: the result of a skill without a declared output is returned unchanged, and
// nothing is counted in it.
func TestNothingDeclared(t *testing.T) {
	w := world{{
		skill{Name: "city_list", Description: "Lists the cities with their inhabitants.", InputSchema: json.RawMessage(noInput), OutputSchema: json.RawMessage(`{"type":"object"}`)},
		func(json.RawMessage) (json.RawMessage, error) {
			return json.RawMessage(`{"cities":[{"city":"Oslo"}]}`), nil
		},
	}}
	if o := w.turn(t, "List the cities and their inhabitants"); len(o.results) != 1 || string(o.results[0].Result) != `{"cities":[{"city":"Oslo"}]}` {
		t.Errorf("%+v", o)
	}
	for _, task := range []string{"How many cities are there?", "List 3 cities", "The cities with the most inhabitants", "List the cities in Norway"} {
		if o := w.turn(t, task); o.plan.Infeasible == "" {
			t.Errorf("%s: %+v", task, o.plan)
		}
	}
}
