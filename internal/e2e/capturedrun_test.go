package e2e

import (
	"context"
	"encoding/json"
	"flag"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/intents/catalog"
)

var update = flag.Bool("update", false, "write captured runs anew")

// steady leaves out of a value what each run makes anew.
func steady(value any) any {
	members, _ := value.(map[string]any)
	for name, v := range members {
		if members[name] = steady(v); slices.Contains([]string{"plan_id", "task_id", "parent", "jwk", "pop", "deadline"}, name) {
			members[name] = "…"
		}
	}
	return value
}

// TestCapturedRun: the rows of a turn whose agent searches, asks an agent that answers with an
// object, and reports its findings. `go test ./internal/e2e -run TestCapturedRun -update` writes
// the file anew.
func TestCapturedRun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"clerk":   "name: clerk\ndescription: Answers customers.\ntools: [{name: search}]\nsub_agents: [analyst]\n",
		"analyst": "name: analyst\ndisplay_name: Analyst\ndescription: Says what a text is about.\nstructured_output: true\nproperties:\n  topic: {type: string}\n  sure: {type: number}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name+".yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := start(t, setup{Agents: dir, Model: &cast{parts: map[string]func(context.Context, model.Request) *model.Response{
		"clerk": func(_ context.Context, req model.Request) *model.Response {
			switch len(exchanges(req)) {
			case 0:
				return replying(req, call("search", `{"mode":"SEARCH","query":"refund"}`))
			case 1:
				return replying(req, call("ask_analyst", `{"input_text":"What is this about: Was my refund paid?"}`))
			}
			return &model.Response{Text: "It is about refunds."}
		},
		"analyst": func(_ context.Context, req model.Request) *model.Response {
			return replying(req, call("final_result", `{"topic":"refunds","sure":0.9}`))
		},
	}}})
	ana := s.as("ana")
	ana.session = "talk"
	out := s.askAgent(ana, "clerk", "Was my refund paid?")
	if out.Status != "complete" {
		t.Fatalf("%s: %s", out.Status, out.Reason)
	}
	var rows catalog.MemoryQueryResult
	sql := "SELECT message_type, content, tool_calls FROM messages WHERE plan_id = '" + out.PlanID + "' ORDER BY created_at, position"
	if _, p := s.call(ana, http.MethodPost, "/query/", map[string]string{"mode": "SQL", "query": sql}, &rows); p.Code != "" {
		t.Fatalf("%+v", p)
	}
	var types []any
	for _, row := range rows.Rows {
		types = append(types, row["message_type"])
		for _, name := range []string{"tool_calls", "content"} { // JSON is shown as what it is
			var value any
			if text, ok := row[name].(string); ok && json.Unmarshal([]byte(text), &value) == nil {
				row[name] = value
			}
			row[name] = steady(row[name])
		}
	}
	if d := gocmp.Diff([]any{"user", "tool_call", "tool_response", "tool_call", "tool_response", "assistant"}, types); d != "" {
		t.Fatal(d)
	}
	got, err := yaml.Marshal(rows.Rows)
	if err != nil {
		t.Fatal(err)
	}
	const file = "testdata/runs/agent_run.yaml"
	if *update {
		if err := os.WriteFile(file, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := gocmp.Diff(string(want), string(got)); d != "" {
		t.Errorf("%s (-want +got; -update writes it anew):\n%s", file, d)
	}
}
