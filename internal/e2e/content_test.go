package e2e

import (
	"bytes"
	"context"
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	mcpclient "github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"aob.dev/writ/agentic/model"
)

// contentServer has a tool, resources and a prompt of all kinds of content.
func contentServer(t *testing.T, film string) string {
	t.Helper()
	s := server.NewMCPServer("lib", "1")
	shot := mcp.NewTool("shot", mcp.WithReadOnlyHintAnnotation(true), mcp.WithDestructiveHintAnnotation(false))
	s.AddTool(shot, func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{
			mcp.NewTextContent("before"), mcp.NewImageContent("AAECAw==", "image/png"), mcp.NewTextContent("after"), mcp.NewAudioContent("BAU=", "audio/wav"),
			mcp.NewEmbeddedResource(mcp.BlobResourceContents{URI: "lib://film", MIMEType: "video/mp4", Blob: film}),
			mcp.NewResourceLink("lib://book", "the book", "", "text/plain"), mcp.NewResourceLink("https://docs.example/a", "the manual", "", "text/html"),
		}}, nil
	})
	book := strings.Repeat("word ", 20_000)
	s.AddResource(mcp.NewResource("lib://book", "book"), func(context.Context, mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
		return []mcp.ResourceContents{mcp.TextResourceContents{URI: "lib://book", MIMEType: "text/plain", Text: book}}, nil
	})
	s.AddResourceTemplate(mcp.NewResourceTemplate("lib://page/{n}", "page"), func(_ context.Context, r mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
		return []mcp.ResourceContents{mcp.BlobResourceContents{URI: r.Params.URI, MIMEType: "image/png", Blob: "AAECAw=="}}, nil
	})
	s.AddPrompt(mcp.NewPrompt("greet", mcp.WithArgument("who")), func(_ context.Context, r mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		return mcp.NewGetPromptResult("", []mcp.PromptMessage{
			mcp.NewPromptMessage(mcp.RoleUser, mcp.NewTextContent("Greet "+r.Params.Arguments["who"])), mcp.NewPromptMessage(mcp.RoleAssistant, mcp.NewImageContent("AAECAw==", "image/png")),
		}), nil
	})
	h := httptest.NewServer(server.NewStreamableHTTPServer(s))
	t.Cleanup(func() {
		h.CloseClientConnections()
		h.Close()
	})
	return h.URL + "/mcp"
}

// TestContentPasses: what a server returns reaches an MCP client as it was sent, a large part by a
// link; its resources and prompts are read by intents.
func TestContentPasses(t *testing.T) {
	t.Parallel()
	film := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte("film"), 300_000))
	s := start(t, setup{Skills: []string{"name=lib -- " + contentServer(t, film)}})
	c := s.mcpClient(s.addPerson("default", "ana", "user"))
	r, err := c.CallTool(t.Context(), mcp.CallToolRequest{Params: mcp.CallToolParams{Name: "shot"}})
	if err != nil || r.IsError || len(r.Content) != 7 {
		t.Fatalf("%+v, error %v", r, err)
	}
	link, _ := r.Content[4].(mcp.ResourceLink)
	r.Content[4] = nil
	want := []mcp.Content{
		mcp.NewTextContent("before"), mcp.NewImageContent("AAECAw==", "image/png"), mcp.NewTextContent("after"), mcp.NewAudioContent("BAU=", "audio/wav"), nil,
		mcp.NewResourceLink("writ://lib/lib://book", "the book", "", "text/plain"), mcp.NewResourceLink("https://docs.example/a", "the manual", "", "text/html"),
	}
	if d := cmp.Diff(want, r.Content); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if link.MIMEType != "video/mp4" || read(t, c, link.URI) != film {
		t.Errorf("the film is %+v", link)
	}
	if got := read(t, c, "writ://lib/lib://book"); got != strings.Repeat("word ", 20_000) {
		t.Errorf("the book has %d bytes", len(got))
	}
	if got := read(t, c, "writ://lib/lib://page/7"); got != "AAECAw==" {
		t.Errorf("the page is %s", got)
	}
	if list, err := c.ListResources(t.Context(), mcp.ListResourcesRequest{}); err != nil || !strings.Contains(marshalled(list.Resources), `"writ://lib/lib://book"`) {
		t.Errorf("resources %+v, error %v", list, err)
	}
	if list, err := c.ListResourceTemplates(t.Context(), mcp.ListResourceTemplatesRequest{}); err != nil || !strings.Contains(marshalled(list.ResourceTemplates), `"writ://lib/lib://page/{n}"`) {
		t.Errorf("templates %+v, error %v", list, err)
	}
	got, err := c.GetPrompt(t.Context(), mcp.GetPromptRequest{Params: mcp.GetPromptParams{Name: "lib.greet", Arguments: map[string]string{"who": "Ben"}}})
	if err != nil {
		t.Fatal(err)
	}
	said := []mcp.PromptMessage{mcp.NewPromptMessage(mcp.RoleUser, mcp.NewTextContent("Greet Ben")), mcp.NewPromptMessage(mcp.RoleAssistant, mcp.NewImageContent("AAECAw==", "image/png"))}
	if d := cmp.Diff(said, got.Messages); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	reads := 0
	for _, o := range s.intents("") {
		if o.Type == "resource.read" && o.Outcome != nil {
			reads++
		}
	}
	if reads != 4 {
		t.Errorf("%d readings are on record, want the lists, the book, the page and the prompt", reads)
	}
	if list, err := c.ListTools(t.Context(), mcp.ListToolsRequest{}); err != nil || strings.Contains(marshalled(list), "resources/read") {
		t.Errorf("tools %+v, error %v", list, err)
	}
}

// read returns text or bytes of a resource.
func read(t *testing.T, c *mcpclient.Client, uri string) string {
	t.Helper()
	r, err := c.ReadResource(t.Context(), mcp.ReadResourceRequest{Params: mcp.ReadResourceParams{URI: uri}})
	if err != nil || len(r.Contents) != 1 {
		t.Fatalf("%s: %+v, error %v", uri, r, err)
	}
	switch x := r.Contents[0].(type) {
	case mcp.TextResourceContents:
		return x.Text
	case mcp.BlobResourceContents:
		return x.Blob
	}
	return ""
}

// TestImagesReachModels: an agent's model sees the image that a tool returns, once, after its result. No record has
// its bytes, and an MCP client gets the image as before.
func TestImagesReachModels(t *testing.T) {
	t.Parallel()
	png := append([]byte("\x89PNG\r\n\x1a\n"), bytes.Repeat([]byte("pixel"), 10_000)...)
	encoded := base64.StdEncoding.EncodeToString(png)
	srv := server.NewMCPServer("lib", "1")
	srv.AddTool(mcp.NewTool("shot", mcp.WithReadOnlyHintAnnotation(true), mcp.WithDestructiveHintAnnotation(false)), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{mcp.NewTextContent("the screen"), mcp.NewImageContent(encoded, "image/png"), mcp.NewImageContent("AAECAw==", "image/png")}}, nil
	})
	h := httptest.NewServer(server.NewStreamableHTTPServer(srv))
	t.Cleanup(func() {
		h.CloseClientConnections()
		h.Close()
	})
	var seen []model.Message
	m := &mind{}
	s := start(t, setup{Skills: []string{"name=lib -- " + h.URL + "/mcp"}, Model: general{m, func(req model.Request) *model.Response {
		if len(exchanges(req)) == 0 {
			return replying(req, call("shot", "{}"))
		}
		seen = req.Messages
		return &model.Response{Text: "It shows pixels.", Model: m.Name()}
	}}})
	var reply struct{ Response string }
	if status, p := s.call(s.as("local"), http.MethodPost, "/agent/run", map[string]any{"agent": "general", "message": "What does the screen show?"}, &reply); status != http.StatusOK || reply.Response != "It shows pixels." {
		t.Fatalf("HTTP %d %+v %+v", status, p, reply)
	}
	if len(seen) < 2 {
		t.Fatalf("%+v", seen)
	}
	last, result := seen[len(seen)-1], seen[len(seen)-2]
	if !slices.Equal(last.Shown, []string{"data:image/png;base64," + encoded}) || !strings.HasPrefix(last.Text, "image/png of result r1: 50008 bytes, file ") || result.Role != model.RoleTool || strings.Contains(result.Text, encoded[:100]) {
		t.Errorf("the model sees %.200q and %.200q", last.Text, result.Text)
	}
	for rec, err := range s.records().Scan(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		for name, part := range rec.Parts {
			if bytes.Contains(part, []byte(encoded[:100])) {
				t.Errorf("part %s of record %d has the image", name, rec.Position)
			}
		}
	}
	r, err := s.mcpClient(s.addPerson("default", "ana", "user")).CallTool(t.Context(), mcp.CallToolRequest{Params: mcp.CallToolParams{Name: "shot"}})
	if err != nil || len(r.Content) != 3 {
		t.Fatalf("%+v, error %v", r, err)
	}
	if x, ok := r.Content[1].(mcp.ImageContent); !ok || x.Data != encoded {
		t.Errorf("%.200v", r.Content[1])
	}
}
