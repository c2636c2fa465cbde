package e2e

import (
	"context"
	"encoding/json"
	"io/fs"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"aob.dev/writ/intents/catalog"
)

// TestRedact: what policy has removed from results is in no answer, record or file, and the record
// has the counts. Without the policy it is there: the test sees what it looks for.
func TestRedact(t *testing.T) {
	t.Parallel()
	const mail, card = "ana.of.the.north@shop.example", "4111 1111 1111 1111"
	m := server.NewMCPServer("shop", "1", server.WithToolCapabilities(false))
	yes, no := true, false
	for name, text := range map[string]string{"small": mail + " paid by " + card, "large": strings.Repeat(mail+" paid by "+card+"\n", 4000)} {
		tool := mcp.NewToolWithRawSchema(name, "Lists payments.", json.RawMessage(`{"type":"object"}`))
		tool.Annotations = mcp.ToolAnnotation{ReadOnlyHint: &yes, DestructiveHint: &no}
		m.AddTool(tool, func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return mcp.NewToolResultText(text), nil
		})
	}
	srv := httptest.NewServer(server.NewStreamableHTTPServer(m, server.WithStateLess(true), server.WithDisableStreaming(true)))
	t.Cleanup(srv.Close)
	s := start(t, setup{Skills: []string{"name=shop -- " + srv.URL + "/mcp"}})
	c := s.mcpClient(s.addPerson("default", "ana", "user"))
	call := func(name string, args map[string]any) string {
		t.Helper()
		r, err := c.CallTool(t.Context(), mcp.CallToolRequest{Params: mcp.CallToolParams{Name: name, Arguments: args}})
		if err != nil {
			t.Fatal(err)
		}
		return marshalled(r)
	}
	s.operate("admin.put", catalog.AdminPut{Tenant: "default", Data: &catalog.Data{Key: "redact", Value: json.RawMessage(`{"skill.call":["email","card"]}`)}})
	if got := call("small", nil); !strings.Contains(got, "[email] paid by [card]") {
		t.Errorf("small: %s", got)
	}
	large := s.use(c, "large", nil)
	if large["status"] != "by_reference" {
		t.Fatalf("large: %v", large)
	}
	if got := call("read_lines", map[string]any{"from": large["from"], "start": 3990, "n": 5}); !strings.Contains(got, "[email] paid by [card]") {
		t.Errorf("lines: %s", got)
	}
	var counts []string
	for _, o := range s.intents("") {
		if o.Type == "skill.call" && o.Outcome != nil {
			if strings.Contains(marshalled(o.Outcome), mail) || strings.Contains(marshalled(o.Outcome), card) {
				t.Errorf("the record has %s", marshalled(o.Outcome))
			}
			for _, e := range o.Outcome.Events {
				if e.Event == "result.redacted" {
					counts = append(counts, string(e.Payload))
				}
			}
		}
	}
	if want := []string{`{"card":1,"email":1}`, `{"card":4000,"email":4000}`}; !slices.Equal(counts, want) {
		t.Errorf("the record has the counts %q", counts)
	}
	if file := found(t, s.dir, mail, card); file != "" && documents(s.dir).URL == "" {
		t.Errorf("what was removed is in %s", file)
	}
	s.operate("admin.put", catalog.AdminPut{Tenant: "default", Data: &catalog.Data{Key: "redact", Value: json.RawMessage(`null`)}})
	if got := call("small", nil); !strings.Contains(got, mail) {
		t.Errorf("without the policy: %s", got)
	}
}

// found returns a file below a directory that has one of some texts in it.
func found(t *testing.T, dir string, texts ...string) (file string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		raw, err := os.ReadFile(path)
		for _, text := range texts {
			if strings.Contains(string(raw), text) {
				file = path
			}
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	return file
}
