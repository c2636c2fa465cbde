package e2e

import (
	"context"
	"encoding/json"
	"math"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

// skill is one tool of a skill server of a test. It is read-only.
type skill struct {
	name, about   string
	input, output string              // JSON Schema; no output: none is declared
	hints         *mcp.ToolAnnotation // nil: it only reads, and may be repeated
	do            func(input json.RawMessage) (any, error)
}

// skillServer speaks MCP over streamable HTTP and remembers every call.
type skillServer struct {
	url string

	mu    sync.Mutex // guards calls
	calls map[string][]json.RawMessage
}

const noInput = `{"type":"object","properties":{},"additionalProperties":false}`

// serveSkills serves until the test ends.
func serveSkills(t *testing.T, skills ...skill) *skillServer {
	t.Helper()
	s := &skillServer{calls: make(map[string][]json.RawMessage)}
	m := server.NewMCPServer("e2e", "1", server.WithToolCapabilities(false))
	for _, sk := range skills {
		m.AddTool(sk.tool(), s.handler(sk))
	}
	srv := httptest.NewServer(server.NewStreamableHTTPServer(m, server.WithStateLess(true), server.WithDisableStreaming(true)))
	t.Cleanup(func() {
		srv.CloseClientConnections()
		srv.Close()
	})
	s.url = srv.URL + "/mcp"
	return s
}

func (sk skill) tool() mcp.Tool {
	if sk.input == "" {
		sk.input = noInput
	}
	tool := mcp.NewToolWithRawSchema(sk.name, sk.about, json.RawMessage(sk.input))
	if sk.output != "" {
		tool.RawOutputSchema = json.RawMessage(sk.output)
	}
	yes := true
	tool.Annotations = mcp.ToolAnnotation{ReadOnlyHint: &yes, IdempotentHint: &yes}
	if sk.hints != nil {
		tool.Annotations = *sk.hints
	}
	return tool
}

func (s *skillServer) handler(sk skill) server.ToolHandlerFunc {
	return func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		s.mu.Lock()
		s.calls[sk.name] = append(s.calls[sk.name], req.Params.RawArguments)
		s.mu.Unlock()
		out, err := sk.do(req.Params.RawArguments)
		if err != nil {
			return mcp.NewToolResultError(err.Error()), nil
		}
		raw, err := json.Marshal(out)
		if err != nil {
			return nil, err
		}
		res := mcp.NewToolResultText(string(raw))
		if sk.output != "" {
			res.RawStructuredContent = raw
		}
		return res, nil
	}
}

// count is how often a skill was called.
func (s *skillServer) count(name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.calls[name])
}

// always answers the same.
func always(v any) func(json.RawMessage) (any, error) {
	return func(json.RawMessage) (any, error) { return v, nil }
}

// sameJSON compares a result with what a test computed; sums of floating-point
// numbers may differ in their last digits.
func sameJSON(t *testing.T, want any, got json.RawMessage) {
	t.Helper()
	raw, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var a, b any
	if err := json.Unmarshal(raw, &a); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(got, &b); err != nil {
		t.Fatalf("%v: %q", err, got)
	}
	near := cmp.Comparer(func(x, y float64) bool { return math.Abs(x-y) < 1e-6 })
	if d := cmp.Diff(a, b, near); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
