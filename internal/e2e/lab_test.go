package e2e

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

// lab is a skill server for workflows: it fetches counts, uploads totals, which fails as
// often as a test says, and notifies, which cannot be undone.
type lab struct {
	skills string           // as --skills takes it
	gates  map[string]*gate // by tool

	mu       sync.Mutex // guards the rest
	fails    int        // uploads that fail before one succeeds
	uploads  []string   // intent_ids
	notified []string   // texts
}

func serveLab(t *testing.T, gates map[string]*gate) *lab {
	t.Helper()
	l := &lab{gates: gates}
	m := server.NewMCPServer("lab", "1", server.WithToolCapabilities(false))
	add := func(name, about, output string, readOnly bool, do func(mcp.CallToolRequest) (any, string)) {
		tool := mcp.NewToolWithRawSchema(name, about, json.RawMessage(`{"type":"object"}`))
		tool.RawOutputSchema = json.RawMessage(output)
		destroys := name == "notify" // it cannot be undone
		tool.Annotations = mcp.ToolAnnotation{ReadOnlyHint: &readOnly, DestructiveHint: &destroys}
		m.AddTool(tool, func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			l.mu.Lock()
			out, wrong := do(req)
			l.mu.Unlock()
			if g := l.gates[name]; g != nil {
				g.pass(ctx)
			}
			if wrong != "" {
				return mcp.NewToolResultError(wrong), nil
			}
			raw, err := json.Marshal(out)
			r := mcp.NewToolResultText(string(raw))
			r.RawStructuredContent = raw
			return r, err
		})
	}
	add("fetch", "Fetches counts.", `{"type":"object","properties":{"counts":{"type":"array"}},"required":["counts"]}`, true, func(req mcp.CallToolRequest) (any, string) {
		return map[string]any{"counts": []int{req.GetInt("first", 0), 4, 5}}, ""
	})
	add("upload", "Uploads a total.", `{"type":"object","properties":{"url":{"type":"string"}},"required":["url"]}`, false, func(req mcp.CallToolRequest) (any, string) {
		if l.uploads = append(l.uploads, req.Header.Get("Idempotency-Key")); l.fails > 0 {
			l.fails--
			return nil, "the bucket is locked"
		}
		return map[string]any{"url": "s3://lab/" + marshalled(req.GetArguments()["total"])}, ""
	})
	add("notify", "Tells somebody.", `{"type":"object","properties":{"sent":{"type":"boolean"}},"required":["sent"]}`, false, func(req mcp.CallToolRequest) (any, string) {
		l.notified = append(l.notified, req.GetString("text", ""))
		return map[string]any{"sent": true}, ""
	})
	srv := httptest.NewServer(server.NewStreamableHTTPServer(m, server.WithStateLess(true), server.WithDisableStreaming(true)))
	t.Cleanup(func() {
		srv.CloseClientConnections()
		srv.Close()
	})
	l.skills = "trust=true name=lab effect=upload:idempotent effect=notify:once -- " + srv.URL + "/mcp"
	return l
}

func (l *lab) failUploads(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fails = n
}

// notifications are the texts of the notifications, in order.
func (l *lab) notifications() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.notified)
}

// uploaded are the intent_ids of the calls of upload, in order.
func (l *lab) uploaded() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.uploads)
}

// registryDir is a directory of a registry with these files.
func registryDir(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
