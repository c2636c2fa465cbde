//go:build integration

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

// modules is where `make integration` has put the servers of others.
func modules(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("WRIT_NODE_MODULES")
	if dir == "" {
		t.Fatal("WRIT_NODE_MODULES is not set: run make integration")
	}
	return dir
}

// TestIntegrationSkillServers: the reference servers of the MCP project are
// skill servers as they come, over standard input and output. Their tools are
// approved on first sight, found, and called by signed intents of a task.
func TestIntegrationSkillServers(t *testing.T) {
	t.Parallel()
	bin := filepath.Join(modules(t), ".bin")
	graph := filepath.Join(t.TempDir(), "graph.jsonl")
	picked := []string{"echo", "get-sum", "create_entities", "read_graph"}
	entity := `{"entities":[{"name":"writ","entityType":"intent","observations":["signed"]}]}`
	input := map[string]string{"echo": `{"message":"a signed intent"}`, "get-sum": `{"a":19,"b":23}`, "create_entities": entity, "read_graph": `{}`}
	m := &mind{
		pick: picked,
		plan: func(planning) model.Call {
			return steps(
				step(1, "echo the message", "echo", 0, "string"),
				step(2, "get the sum", "get-sum", 0, "string"),
				step(3, "create the entities", "create_entities", 0, "{entities: array<{name: string, entityType: string, observations: array<string>}>}"),
				step(4, "read the graph", "read_graph", 0, "{entities: array<{name: string, entityType: string, observations: array<string>}>}"),
			)
		},
		act: func(in working) action {
			name := toolOf(in.Skills[0])
			switch {
			case len(in.Calls) == 0:
				return use(name, input[name])
			case in.Calls[0].Error != "":
				return insufficient(in.Calls[0].Error, "")
			}
			return finish
		},
		script: func(scripting) string { // the graph has relations, too
			return "import json\nprint(json.dumps({'entities': json.load(open(input_file))['entities']}))"
		},
	}
	s := start(t, setup{Model: m, Skills: []string{
		fmt.Sprintf("effect=echo:pure effect=get-sum:pure files=%s -- %q stdio", modules(t), filepath.Join(bin, "mcp-server-everything")),
		fmt.Sprintf("effect=create_entities:idempotent effect=read_graph:pure files=%s files=%s:rw env=MEMORY_FILE_PATH=%s -- %q", modules(t), filepath.Dir(graph), graph, filepath.Join(bin, "mcp-server-memory")),
	}})

	approved := map[string]catalog.Effect{}
	for _, o := range s.intents("") {
		var a catalog.SkillApprove
		if o.Type != "skill.approve" {
			continue
		}
		if err := json.Unmarshal(o.Args, &a); err != nil {
			t.Fatal(err)
		}
		approved[toolOf(a.Skill)] = a.Effect
	}
	for _, name := range picked {
		if approved[name] == "" {
			t.Errorf("%s was not approved on first sight; approved are %v", name, approved)
		}
	}

	got := s.ask(s.as("ana"), "Echo a message, get the sum of two numbers, create entities and read the whole knowledge graph")
	if got.Status != "complete" {
		t.Fatalf("%s: %s; history %+v", got.Status, got.Reason, got.Plan.History)
	}
	var found catalog.SkillFindResult
	if err := json.Unmarshal(got.called("skill.find")[0].Outcome.Result, &found); err != nil {
		t.Fatal(err)
	}
	for _, name := range picked {
		if !slices.ContainsFunc(found.Skills, func(h catalog.SkillHit) bool { return toolOf(h.Name) == name }) {
			t.Errorf("skill.find does not list %s", name)
		}
	}

	calls := got.called("skill.call")
	if len(calls) != len(picked) {
		t.Fatalf("%d calls", len(calls))
	}
	for i, want := range []string{"a signed intent", "42", "signed", "signed"} {
		o := calls[i]
		if o.Signer != intents.RoleTask || o.Outcome.Status != intents.Done || !strings.Contains(string(o.Outcome.Result), want) {
			t.Errorf("%s, signed by a key of role %s: %s %s, want %q in it", o.Args, o.Signer, o.Outcome.Code, o.Outcome.Result, want)
		}
	}
	var answer struct {
		Entities []struct {
			Name         string   `json:"name"`
			Observations []string `json:"observations"`
		} `json:"entities"`
	}
	if err := json.Unmarshal(got.Data, &answer); err != nil || len(answer.Entities) != 1 || answer.Entities[0].Name != "writ" || answer.Entities[0].Observations[0] != "signed" {
		t.Errorf("answer %s: %v", got.Data, err)
	}
	if kept, err := os.ReadFile(graph); err != nil || !strings.Contains(string(kept), "signed") {
		t.Errorf("the server of others kept %q: %v", kept, err)
	}
}
