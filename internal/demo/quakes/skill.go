package quakes

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"io"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

//go:embed schemas/*.json
var schemaFiles embed.FS

// skill is one tool of this server: its manifest and its function.
type skill struct {
	name, description string
	input, output     json.RawMessage
	handle            server.ToolHandlerFunc
}

// tool is the manifest as MCP declares it. All skills of this server are pure.
func (s skill) tool() mcp.Tool {
	t := mcp.NewToolWithRawSchema(s.name, s.description, s.input)
	t.RawOutputSchema = s.output
	yes, no := true, false
	t.Annotations = mcp.ToolAnnotation{ReadOnlyHint: &yes, IdempotentHint: &yes, DestructiveHint: &no, OpenWorldHint: &no}
	return t
}

// schema returns an embedded schema by its file name without extension; the
// names are constants of this package, so a missing one is a bug.
func schema(name string) json.RawMessage {
	b, err := schemaFiles.ReadFile("schemas/" + name + ".json")
	if err != nil {
		panic(err)
	}
	var c bytes.Buffer
	if err := json.Compact(&c, b); err != nil {
		panic(err)
	}
	return c.Bytes()
}

// typed decodes the arguments into In, refusing members it does not know, and
// answers with the handler's value as structured content. An error of the
// handler is the tool's error text, never a protocol error.
func typed[In, Out any](do func(In) (Out, error)) server.ToolHandlerFunc {
	return func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		var in In
		if err := decode(req, &in); err != nil {
			return mcp.NewToolResultError(err.Error()), nil
		}
		out, err := do(in)
		if err != nil {
			return mcp.NewToolResultError(err.Error()), nil
		}
		b, err := json.Marshal(out)
		if err != nil {
			return nil, fmt.Errorf("encode result: %w", err)
		}
		return structured(b, string(b)), nil
	}
}

func decode(req mcp.CallToolRequest, into any) error {
	raw := req.Params.RawArguments
	if len(raw) == 0 {
		raw = json.RawMessage("{}")
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("bad arguments: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return fmt.Errorf("bad arguments: data after the object")
	}
	return nil
}

// structured is a result whose text may differ from the structured content in
// its white space only.
func structured(data json.RawMessage, text string) *mcp.CallToolResult {
	r := mcp.NewToolResultText(text)
	r.RawStructuredContent = data
	return r
}
