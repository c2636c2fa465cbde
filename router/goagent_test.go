package router_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
)

// TestGoAgent: the program that docs/extending.md shows compiles, and the agent that it prints is
// pushed and executes a plan.
func TestGoAgent(t *testing.T) {
	page, err := os.ReadFile("../docs/extending.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, found := strings.Cut(string(page), "```go\npackage main")
	program, _, whole := strings.Cut(after, "```")
	if !found || !whole {
		t.Fatal("the page has no program")
	}
	file := filepath.Join(t.TempDir(), "main.go")
	if err := os.WriteFile(file, []byte("package main"+program), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "go", "run", file)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0") // with the race detector, too: what the other tests have compiled
	cmd.Stderr = t.Output()
	text, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	w := routertest.New(t, routertest.Options{})
	w.Pin("crm.list_outlets", catalog.Pure)
	w.PushAgents(1, map[string]string{"ranker": string(text)})
	task := w.BegunAgent("p", "ranker").Started(1)
	w.Want(task.Call("crm.list_outlets", `{}`), intents.OK)
	w.Want(task.Reply(`{"topic":"outlets","best":["Oslo"]}`), intents.OK)
}
