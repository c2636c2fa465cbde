//go:build integration

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/mark3labs/mcp-go/mcp"

	"aob.dev/writ/intents/catalog"
)

// everything is @modelcontextprotocol/server-everything as a skill server.
func everything(t *testing.T) string {
	t.Helper()
	return fmt.Sprintf("name=every effect=echo:pure effect=get-sum:pure files=%s -- %q stdio", modules(t), filepath.Join(modules(t), ".bin", "mcp-server-everything"))
}

// program runs one of somebody else's, and decodes the JSON that it prints.
func program(t *testing.T, into any, command ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %v\n%s%s", command[1], err, out.Bytes(), said.Bytes())
	}
	if err := json.Unmarshal(out.Bytes(), into); err != nil {
		t.Fatalf("%s: %v\n%s", command[1], err, out.Bytes())
	}
}

func python(t *testing.T, variable string) string {
	t.Helper()
	path := os.Getenv(variable)
	if path == "" {
		t.Fatalf("%s names no interpreter: run make integration", variable)
	}
	return path
}

// TestIntegrationMCPClients: the MCP inspector, langchain-mcp-adapters and openai-agents use
// the tools of /mcp as they come.
func TestIntegrationMCPClients(t *testing.T) {
	t.Parallel()
	s := start(t, setup{Skills: []string{everything(t)}})
	ben, _, _ := s.holds("every.toggle-subscriber-updates")
	at := s.url + "/mcp"
	inspect := func(into any, args ...string) {
		t.Helper()
		command := append([]string{"node", filepath.Join(modules(t), ".bin", "mcp-inspector"), "--cli", at}, args...)
		program(t, into, append(command, "--transport", "http", "--header", "X-Api-Key: "+s.key)...)
	}
	var list mcp.ListToolsResult
	inspect(&list, "--method", "tools/list")
	var names []string
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
		if tool.Name == "echo" && (tool.Annotations.ReadOnlyHint == nil || !*tool.Annotations.ReadOnlyHint) {
			t.Errorf("%+v", tool)
		}
	}
	for _, name := range []string{"run_task", "ask_general", "get_result", "read_lines", "echo", "get-structured-content"} {
		if !slices.Contains(names, name) {
			t.Errorf("no tool %s among %v", name, names)
		}
	}
	slices.Sort(names)
	type mcpResult struct {
		Content    []struct{ Text string }
		Structured map[string]any `json:"structuredContent"`
		IsError    bool
		Meta       map[string]any `json:"_meta"`
	}
	var echo, held, after mcpResult
	inspect(&echo, "--method", "tools/call", "--tool-name", "echo", "--tool-arg", "message=hello")
	if len(echo.Content) != 1 || echo.Content[0].Text != "Echo: hello" || echo.Meta["aob.dev/receipt"] == nil {
		t.Errorf("%+v", echo)
	}
	inspect(&held, "--method", "tools/call", "--tool-name", "toggle-subscriber-updates")
	id, _ := held.Structured["intent_id"].(string)
	if held.IsError || held.Structured["status"] != "held" || held.Structured["url"] != s.url+"/console/approvals/"+id {
		t.Fatalf("%+v", held)
	}
	inspect(&after, "--method", "tools/call", "--tool-name", "get_result", "--tool-arg", "intent_id="+id)
	if after.Structured["status"] != "held" {
		t.Errorf("%+v", after)
	}
	if out, p := s.decide(ben, id, "approve", ""); p.Code != "" || out.State == catalog.ApprovalPending {
		t.Fatalf("%+v %+v", out, p)
	}
	for !strings.Contains(fmt.Sprint(after.Content), "subscri") || after.Structured["status"] == "held" { // it goes on by itself
		after = mcpResult{}
		inspect(&after, "--method", "tools/call", "--tool-name", "get_result", "--tool-arg", "intent_id="+id)
	}

	var agents struct {
		Tools  []string
		Echo   []string
		Error  []any
		Held   []any
		Result string
	}
	program(t, &agents, python(t, "WRIT_PYTHON"), filepath.Join("testdata", "mcp_openai_agents.py"), at, s.key)
	if d := cmp.Diff(names, agents.Tools); d != "" {
		t.Errorf("openai-agents lists other tools than the inspector (-inspector +agents):\n%s", d)
	}
	if !reflect.DeepEqual(agents.Echo, []string{"Echo: hello"}) || !reflect.DeepEqual(agents.Error, []any{true, "EXECUTOR_FAILED"}) && !reflect.DeepEqual(agents.Error, []any{true, "MALFORMED_ARGS"}) ||
		!reflect.DeepEqual(agents.Held, []any{false, "held", true}) || agents.Result != "held" {
		t.Errorf("openai-agents: %+v", agents)
	}

	var langchain map[string]any
	program(t, &langchain, python(t, "WRIT_PYTHON_LANGCHAIN"), filepath.Join("testdata", "mcp_langchain.py"), at, s.key)
	for name, want := range map[string]string{"echo": "Echo: hello", "get-structured-content": "temperature", "toggle-subscriber-updates": "held"} {
		if got, _ := langchain[name].(string); !strings.Contains(got, want) {
			t.Errorf("langchain-mcp-adapters: %s: %v", name, langchain[name])
		}
	}
}

// keywords is the schema of the runner's tool whose keywords must arrive.
const keywords = `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object",
	"$defs":{"address":{"$anchor":"addressDef","type":"object","properties":{"street":{"type":"string"},"city":{"type":"string"}}}},
	"properties":{"name":{"type":"string"},"address":{"$ref":"#/$defs/address"},"contactMethod":{"type":"string","enum":["phone","email"]},"phone":{"type":"string"},"email":{"type":"string"}},
	"allOf":[{"anyOf":[{"required":["phone"]},{"required":["email"]}]}],
	"if":{"properties":{"contactMethod":{"const":"phone"}},"required":["contactMethod"]},"then":{"required":["phone"]},"else":{"required":["email"]},"additionalProperties":false}`

// TestIntegrationMCPConformance: of what the official runner requires of a server, in each of
// the two current revisions, /mcp fails exactly what testdata/conformance.yml names: what it
// does not offer. The runner also holds each message to the schema of its revision.
func TestIntegrationMCPConformance(t *testing.T) {
	t.Parallel()
	skills := serveSkills(t,
		skill{name: "test_simple_text", about: "Says something.", do: func(json.RawMessage) (any, error) { return "This is a simple text response for testing.", nil }},
		skill{name: "test_error_handling", about: "Fails.", do: func(json.RawMessage) (any, error) {
			return nil, fmt.Errorf("This tool intentionally returns an error for testing")
		}},
		skill{name: "json_schema_2020_12_tool", about: "Tool with JSON Schema 2020-12 features", do: func(json.RawMessage) (any, error) { return "ok", nil }, input: keywords},
		skill{name: "in_region", about: "Takes a header.", do: func(json.RawMessage) (any, error) { return "ok", nil }, input: `{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}},"required":["region"]}`},
	)
	s := start(t, setup{Skills: []string{skills.url}})
	target, err := url.Parse(s.url)
	if err != nil {
		t.Fatal(err)
	}
	keyed := httptest.NewServer(&httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) { // the runner has no key
		r.SetURL(target)
		r.Out.Host = r.In.Host
		r.Out.Header.Set("X-Api-Key", s.key)
	}})
	t.Cleanup(func() {
		keyed.CloseClientConnections()
		keyed.Close()
	})
	here, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	runner := filepath.Join(modules(t), ".bin", "conformance")
	var both sync.WaitGroup
	for revision, beside := range map[string][]string{ // what came after a revision does not count for the runner, and does for us
		mcp.ProtocolVersion20251125: {"server-session-lifecycle", "json-schema-2020-12"},
		mcp.ProtocolVersion20260728: {"json-schema-2020-12", "http-header-validation", "http-custom-header-server-validation"},
	} {
		both.Go(func() {
			cmd := exec.CommandContext(t.Context(), "node", "--no-warnings", "--loader", filepath.Join(here, "conformance_loader.mjs"), runner,
				"server", "--url", keyed.URL+"/mcp", "--requirements", revision, "--expected-failures", filepath.Join(here, "conformance-"+revision+".yml"))
			cmd.Dir = t.TempDir()
			out, err := cmd.CombinedOutput()
			for _, name := range append(beside, "tools-list", "tools-call-simple-text") {
				if !bytes.Contains(out, []byte("✓ "+name+": ")) && err == nil {
					err = fmt.Errorf("%s has not passed", name)
				}
			}
			if err != nil {
				t.Errorf("%s: %v\n%s", revision, err, out)
			}
		})
	}
	both.Wait()
}
