package agentic

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"aob.dev/writ/agentic/model"
)

const guide = `
name: guide
description: Helps with outlets.
instructions: You help with outlets. List them before you answer.
properties:
  topic: {type: string, description: Primary topic of the question}
tools:
  - {server: crm, name: list, description: Look before you answer.}
`

// TestCapturedPayloads: the requests to a model's server of an agent that answers in words, and
// of one that answers with an object. `go test ./agentic -run TestCapturedPayloads -update`
// rewrites the files.
func TestCapturedPayloads(t *testing.T) {
	for name, tt := range map[string]struct {
		text  string
		reply any
		check func(system string, tools []string) bool
	}{
		"intercept_unstructured": {guide, "Two.", func(system string, tools []string) bool {
			return strings.Contains(system, "## Thinking Structure") && strings.Contains(system, "- **list**: Look before you answer.") && cmp.Equal(tools, []string{"crm_list"})
		}},
		"intercept_structured": {guide + "structured_output: true\n", call("final_result", map[string]string{"topic": "outlets"}), func(system string, tools []string) bool {
			return !strings.Contains(system, "## Thinking Structure") && cmp.Equal(tools, []string{"crm_list", "final_result"})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCore(t)
			selling(c, tt.text)
			m := says(map[string][]any{"guide": {tt.reply}})
			layer(c, m, "task", "manager")
			dispatchTurn(c)
			shown(c)

			var sent []byte
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
			defer srv.Close()
			remote, err := model.NewOpenAI(model.OpenAIConfig{BaseURL: srv.URL + "/v1", APIKey: "sk-test", Model: "m", Sent: func(body []byte) { sent = body }})
			if err != nil {
				t.Fatal(err)
			}
			_, _ = remote.Respond(t.Context(), m.requests("guide")[0], nil) // it gets no answer
			var body map[string]any
			if err := json.Unmarshal(changing.ReplaceAll(sent, nil), &body); err != nil {
				t.Fatal(err)
			}
			got, err := yaml.Marshal(body)
			if err != nil {
				t.Fatal(err)
			}
			file := "testdata/wire/" + name + ".yaml"
			if *update {
				if err := os.WriteFile(file, got, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(string(want), string(got)); d != "" {
				t.Errorf("%s (-want +got; -update writes it anew):\n%s", file, d)
			}
			first := m.requests("guide")[0]
			if !tt.check(first.System, toolNames(first)) {
				t.Errorf("%s\n%v", first.System, toolNames(first))
			}
		})
	}
}
