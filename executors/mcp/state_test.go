package mcp

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	wire "github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

// TestStructuredIsBounded: structured content above the bound is dropped before
// anybody decodes it, and that is said; below it comes as it was sent, over both transports.
func TestStructuredIsBounded(t *testing.T) {
	size := maxStructured + 64
	s := server.NewMCPServer("test", "1")
	s.AddTool(toolOf("many", anySchema), func(context.Context, wire.CallToolRequest) (*wire.CallToolResult, error) {
		r := wire.NewToolResultText("text")
		row := `{"a":1,"b":"two"},`
		r.RawStructuredContent = json.RawMessage(`{"rows":[` + strings.Repeat(row, size/len(row)) + `{}]}`)
		return r, nil
	})
	c := dial(t, serve(t, server.NewStreamableHTTPServer(s, server.WithStateLess(true))), quick())
	res, err := c.Call(t.Context(), "many", nil, CallMeta{})
	if err != nil || res.IsJSON || res.Text != "text" || len(res.Odd) != 2 {
		t.Fatalf("%+v, error %v", res, err)
	}
	size = 1 << 16
	res, err = c.Call(t.Context(), "many", nil, CallMeta{})
	if err != nil {
		t.Fatal(err)
	}
	if !res.IsJSON || !strings.HasPrefix(string(res.Data), `{"rows":[{"a":1,"b":"two"},`) || res.Text != "text" {
		t.Errorf("%.100s", res.Data)
	}
	if res, err = dial(t, self(t), quick()).Call(t.Context(), "pair", nil, CallMeta{}); err != nil || string(res.Data) != `{"n":1}` {
		t.Errorf("over standard streams: %+v, %v", res, err)
	}
}
