//go:build integration

package e2e

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/state/agents"
)

// TestIntegrationOpenAIClients: the openai clients of PyPI and npm, and openai-agents, work
// as they come: whole and streamed, with usage, and with errors of their own classes.
func TestIntegrationOpenAIClients(t *testing.T) {
	t.Parallel()
	python := os.Getenv("WRIT_PYTHON")
	if python == "" {
		t.Fatal("WRIT_PYTHON names no interpreter: run make integration")
	}
	const hello = "Hello! Ten outlets are open."
	s := start(t, setup{Model: &parrot{hello}})
	whole := []any{hello, "stop", true}
	want := map[string]any{
		"models": []any{agents.Planner, "dreaming-agent", "general", "sample-agent"}, "completion": whole, "chunks": whole, "helper": hello,
		"response": []any{hello, "completed", true}, "events": hello,
		"refusals": map[string]any{
			"key": []any{"UNAUTHORIZED", nil}, "model": []any{"NOT_FOUND", "model"}, "tools": []any{"SCHEMA_INVALID", "tool_choice"},
		},
	}
	for _, c := range []struct {
		name    string
		command []string
		more    []string
	}{
		{"npm", []string{"node", copied(t, "openai_clients.mjs")}, nil},
		{"PyPI", []string{python, filepath.Join("testdata", "openai_clients.py")}, []string{"agents_responses", "agents_responses_streamed", "agents_completions", "agents_completions_streamed"}},
	} {
		cmd := exec.CommandContext(t.Context(), c.command[0], append(c.command[1:], s.url+"/v1", s.key)...)
		cmd.Stderr = t.Output()
		raw, err := cmd.Output()
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		var got map[string]any
		if err := json.Unmarshal(raw, &got); err != nil {
			t.Fatalf("%s: %s: %v", c.name, raw, err)
		}
		for _, name := range c.more {
			if got[name] != hello {
				t.Errorf("%s: %s: %v", c.name, name, got[name])
			}
			delete(got, name)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, d)
		}
	}
}

// copied is a script beside the modules that it imports.
func copied(t *testing.T, name string) string {
	t.Helper()
	dir := t.TempDir()
	script, err := os.ReadFile(filepath.Join("testdata", name))
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, name), script, 0o600)
	}
	if err == nil {
		err = os.Symlink(modules(t), filepath.Join(dir, "node_modules"))
	}
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, name)
}

// parrot is a model whose planner answers by itself, always the same.
type parrot struct{ answer string }

func (*parrot) Name() string { return "test:parrot" }

func (m *parrot) Respond(_ context.Context, req model.Request, _ func(model.Event)) (*model.Response, error) {
	if req.Agent != agents.Planner {
		return nil, &model.Error{Reason: "only the planner is asked"}
	}
	c := call("plan", marshalled(map[string]any{"answer": m.answer}))
	c.ID = "call_1"
	return &model.Response{Calls: []model.Call{c}, Model: m.Name(), Usage: model.Usage{InputTokens: 40, OutputTokens: 8}}, nil
}
