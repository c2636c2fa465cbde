//go:build integration

package mcp_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"aob.dev/writ/executors/mcp"
)

// dial starts a reference server of the MCP project from .cache (`make integration`).
func dial(t *testing.T, command ...string) *mcp.Client {
	t.Helper()
	modules := os.Getenv("WRIT_NODE_MODULES")
	if modules == "" {
		t.Fatal("WRIT_NODE_MODULES is not set: run make integration")
	}
	command[0] = filepath.Join(modules, ".bin", command[0])
	c, err := mcp.Dial(t.Context(), mcp.Source{
		Command: command, Settings: mcp.Settings{Env: []string{"MEMORY_FILE_PATH=" + filepath.Join(t.TempDir(), "memory.jsonl")}},
	}, mcp.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// manifests lists the usable tools by name.
func manifests(t *testing.T, c *mcp.Client) map[string]mcp.Manifest {
	t.Helper()
	list, err := c.Manifests(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]mcp.Manifest{}
	for _, m := range list {
		if m.Err == nil {
			out[m.Name] = m
		}
	}
	if len(out) == 0 {
		t.Fatalf("no usable tool among %d", len(list))
	}
	return out
}

// TestIntegrationEverything calls a tool of @modelcontextprotocol/server-everything.
func TestIntegrationEverything(t *testing.T) {
	c := dial(t, "mcp-server-everything", "stdio")
	echo, ok := manifests(t, c)["echo"]
	if !ok {
		t.Fatal("no tool echo")
	}
	res, err := c.Call(t.Context(), "echo", json.RawMessage(`{"message":"a signed intent"}`), mcp.CallMeta{Digest: echo.Digest()})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(res.Data), "a signed intent") {
		t.Errorf("echo answered %q", res.Data)
	}
}

// TestIntegrationMemory writes to and reads from @modelcontextprotocol/server-memory.
func TestIntegrationMemory(t *testing.T) {
	c := dial(t, "mcp-server-memory")
	if _, ok := manifests(t, c)["create_entities"]; !ok {
		t.Fatal("no tool create_entities")
	}
	entity := json.RawMessage(`{"entities":[{"name":"writ","entityType":"intent","observations":["signed"]}]}`)
	if _, err := c.Call(t.Context(), "create_entities", entity, mcp.CallMeta{}); err != nil {
		t.Fatal(err)
	}
	res, err := c.Call(t.Context(), "read_graph", nil, mcp.CallMeta{})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(res.Data), "signed") {
		t.Errorf("the graph is %s", res.Data)
	}
}
