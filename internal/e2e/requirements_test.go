package e2e

import (
	"fmt"
	"strings"
	"testing"

	"aob.dev/writ/agentic/model"
)

// TestMenu is the case of the blueprint: of a menu of 1 MB two members of each
// item are extracted and kept as menu_categories (DAT-12).
func TestMenu(t *testing.T) {
	type item struct {
		ID       string `json:"item_id"`
		Category string `json:"category"`
		About    string `json:"about"`
	}
	var menu []item
	var want []map[string]string
	for i := range 2000 {
		id, category := fmt.Sprint("i", i), []string{"soup", "fish", "dessert"}[i%3]
		menu = append(menu, item{id, category, strings.Repeat("A dish with a long story. ", 20)})
		want = append(want, map[string]string{"item_id": id, "category": category})
	}
	m := &mind{
		plan: func(model.PlanInput) model.PlanOutput {
			return steps(step(1, "Menu categories", "menu_get", 0, "array<{item_id: string, category: string}>"))
		},
		act: func(in model.ActionInput) model.ActionOutput {
			if len(in.Calls) == 0 {
				return call("menu_get", "{}")
			}
			return do(model.ActExtract)
		},
		script: func(model.ScriptInput) model.ScriptOutput {
			return model.ScriptOutput{Script: "import json\nprint(json.dumps([{k: r[k] for k in ('item_id', 'category')} for r in json.load(open(input_file))]))"}
		},
	}
	server := serveSkills(t, skill{name: "menu_get", about: "The menu with all its items.", do: always(menu)})
	s := start(t, setup{Skills: []string{server.url}, Model: m})
	got := s.ask(s.as("ana"), "Which category has each item of the menu?")
	if got.Status != "complete" {
		t.Fatalf("%s: %s", got.Status, got.Reason)
	}
	if key := got.Plan.Steps[0].MemoryKey; !strings.HasSuffix(key, ":menu_categories") {
		t.Errorf("kept as %s", key)
	}
	if large := got.events("large_response.detected"); len(large) == 0 || large[0]["size_bytes"].(float64) < 1_000_000 {
		t.Errorf("large responses %v", large)
	}
	if ran := got.events("python_script.executed"); len(ran) != 1 || ran[0]["input_rows"] != 2000.0 || ran[0]["output_rows"] != float64(len(want)) {
		t.Errorf("scripts %v", ran)
	}
}
