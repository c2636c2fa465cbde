package skills_test

import (
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"

	wire "github.com/mark3labs/mcp-go/mcp"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/executortest"
	"aob.dev/writ/storage"
)

// TestRedactedFiles: a large answer is redacted before it becomes a file, also when it comes from
// the cache. An answer with an image is refused, and a link is none.
func TestRedactedFiles(t *testing.T) {
	rows := strings.Repeat("ana@shop.example has paid;\n", 3000)
	s := newSite(t, serverOf(
		tool{name: "export", handle: answer("", rows)},
		tool{name: "chart", handle: func(context.Context, wire.CallToolRequest) (*wire.CallToolResult, error) {
			return &wire.CallToolResult{Content: []wire.Content{wire.NewImageContent("AAAA", "image/png")}}, nil
		}},
		tool{name: "link", handle: func(context.Context, wire.CallToolRequest) (*wire.CallToolResult, error) {
			return &wire.CallToolResult{Content: []wire.Content{wire.NewResourceLink("https://shop.example/?of=ana@shop.example", "of ana@shop.example", "", "text/html")}}, nil
		}},
	))
	b := open(t, map[string]*site{"shop": s})
	ids := b.ids(t)
	ask := func(name string) executortest.Intent {
		pin := ids["shop."+name]
		pin.CacheSeconds = 60
		in := named(pin, name)
		in.Ticket.Obligations = []intents.Obligation{{Name: "redact", Value: []any{"email"}}}
		return in
	}
	for range 2 {
		var got catalog.SkillCallResult
		r := b.Must(t, ask("export"), &got)
		if got.Reference == nil || strings.Contains(string(r.Result), "@") || executortest.EventPayload(t, r, "result.redacted")["email"] != 3000.0 {
			t.Fatalf("%.300s %v", r.Result, r.Events)
		}
		file, _, err := b.blobs.Open(t.Context(), storage.Scope{Tenant: "acme", Plan: "plan_1", Revision: 1, Step: 1}, got.FileID)
		if err != nil {
			t.Fatal(err)
		}
		stored, err := io.ReadAll(file)
		if err := file.Close(); err != nil {
			t.Error(err)
		}
		if want := strings.ReplaceAll(rows, "ana@shop.example", "[email]"); err != nil || string(stored) != want {
			t.Errorf("stored %.100s, %v", stored, err)
		}
	}
	if s.calls.Load() != 1 {
		t.Errorf("called %d times", s.calls.Load())
	}
	if r := b.Do(t, ask("chart")); r.Code != intents.OversizedOutput || r.Result != nil {
		t.Errorf("an image: %s %s", r.Code, r.Result)
	}
	var link json.RawMessage
	if b.Must(t, ask("link"), &link); strings.Contains(string(link), "ana@") || !strings.Contains(string(link), "of=[email]") {
		t.Errorf("a link: %s", link)
	}
}
