package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	wire "github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"aob.dev/writ/intents/catalog"
)

func init() { otherServers["library"] = library }

// library is a server with resources and prompts, whose tool asks the client for all that a server
// may ask of one.
func library() *server.MCPServer {
	s := server.NewMCPServer("library", "1", server.WithElicitation(), server.WithRoots())
	s.AddResource(wire.NewResource("lib://one", "one", wire.WithMIMEType("text/plain")), func(_ context.Context, r wire.ReadResourceRequest) ([]wire.ResourceContents, error) {
		return []wire.ResourceContents{
			wire.TextResourceContents{URI: r.Params.URI, MIMEType: "text/plain", Text: "words"}, wire.BlobResourceContents{URI: r.Params.URI, MIMEType: "image/png", Blob: "AQI="},
		}, nil
	})
	s.AddResourceTemplate(wire.NewResourceTemplate("lib://{id}", "any"), func(context.Context, wire.ReadResourceRequest) ([]wire.ResourceContents, error) {
		return nil, errors.New("no such book")
	})
	s.AddPrompt(wire.NewPrompt("greet", wire.WithArgument("who")), func(_ context.Context, r wire.GetPromptRequest) (*wire.GetPromptResult, error) {
		return wire.NewGetPromptResult("", []wire.PromptMessage{wire.NewPromptMessage(wire.RoleUser, wire.NewTextContent("Greet "+r.Params.Arguments["who"]))}), nil
	})
	s.AddTool(toolOf("ask", ""), func(ctx context.Context, _ wire.CallToolRequest) (*wire.CallToolResult, error) {
		ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
		defer cancel()
		of := server.ServerFromContext(ctx)
		_, sampling := of.RequestSampling(ctx, wire.CreateMessageRequest{CreateMessageParams: wire.CreateMessageParams{MaxTokens: 1}}) //nolint:staticcheck // SA1019: servers still ask
		_, elicitation := of.RequestElicitation(ctx, wire.ElicitationRequest{Params: wire.ElicitationParams{Message: "?"}})
		_, roots := of.RequestRoots(ctx, wire.ListRootsRequest{})
		if sampling == nil || elicitation == nil || roots == nil || ctx.Err() != nil {
			return wire.NewToolResultText("granted, or never answered"), nil
		}
		return wire.NewToolResultText("refused"), nil
	})
	return s
}

// libraries are the server over each transport.
func libraries(t *testing.T) map[string]Source {
	t.Helper()
	return map[string]Source{
		"http":   serve(t, streamable(library())),
		"legacy": serve(t, legacyOnly(streamable(library(), server.WithStateful(true)))),
		"stdio":  self(t, stdioServer+"=library"),
	}
}

// TestRead: resources and prompts of a server are read under one approval, which is of that server.
func TestRead(t *testing.T) {
	for peer, src := range libraries(t) {
		t.Run(peer, func(t *testing.T) {
			c := dial(t, src, quick())
			list, err := c.Manifests(t.Context())
			if err != nil || len(list) != 2 || list[1].Name != catalog.ReadSkill || list[1].Err != nil || list[1].Digest() == "" {
				t.Fatalf("%+v, error %v", list, err)
			}
			read := func(input string) (*Result, error) {
				return c.Call(t.Context(), catalog.ReadSkill, json.RawMessage(input), CallMeta{Digest: list[1].Digest()})
			}
			var lists catalog.ResourceLists
			if all, err := read(`{}`); err != nil || json.Unmarshal(all.Data, &lists) != nil || len(lists.Resources) != 1 || len(lists.Templates) != 1 || len(lists.Prompts) != 1 {
				t.Errorf("lists %+v, error %v", all, err)
			}
			book, err := read(`{"uri":"lib://one"}`)
			if err != nil {
				t.Fatal(err)
			}
			want := &Result{
				Data: []byte("words"), Text: "words", Files: []File{{Type: "resource", MIMEType: "image/png", URI: "lib://one", Data: []byte{1, 2}}},
				Parts: []Part{
					{JSON: map[string]any{"uri": "lib://one", "mimeType": "text/plain", "text": "words"}},
					{JSON: map[string]any{"uri": "lib://one", "mimeType": "image/png", "blob": nil}, File: 1},
				},
			}
			if d := cmp.Diff(want, book); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			prompt, err := read(`{"prompt":"greet","arguments":{"who":"Ana"}}`)
			if err != nil || prompt.Text != "Greet Ana" || prompt.Parts[0].JSON["role"] != "user" {
				t.Errorf("prompt %+v, error %v", prompt, err)
			}
			for _, input := range []string{`{"uri":"lib://two"}`, `{"prompt":"none"}`} {
				if _, err := read(input); !errors.Is(err, ErrTool) && !errors.Is(err, ErrRefused) {
					t.Errorf("%s: %v", input, err)
				}
			}
		})
	}
}

// TestServersAskForNothing: a server that asks for sampling, elicitation or roots is refused at once,
// whatever it is connected by, and its call goes on.
func TestServersAskForNothing(t *testing.T) {
	peers := libraries(t)
	delete(peers, "legacy") // it asks by a stream that this client does not open
	peers["stream"] = serve(t, asking(t))
	for peer, src := range peers {
		got, err := dial(t, src, quick()).Call(t.Context(), "ask", nil, CallMeta{})
		if err != nil || got.Text != "refused" {
			t.Errorf("%s: %+v, error %v", peer, got, err)
		}
	}
	a, _ := readAnswer(json.RawMessage(`{"resultType":"input_required","inputRequests":{"a":{"method":"sampling/createMessage","params":{}}},"content":[]}`))
	if !a.isError || !strings.Contains(strings.Join(a.odd, " "), "asks for more") {
		t.Errorf("inside a result: %+v", a)
	}
}

// asking is a server that asks in the stream of a call, and answers once it is refused.
func asking(t *testing.T) http.Handler {
	t.Helper()
	answers := make(chan bool, 3)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m struct {
			ID     json.RawMessage
			Method string
			Error  json.RawMessage
		}
		if r.Method != http.MethodPost || json.NewDecoder(r.Body).Decode(&m) != nil {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		say := func(format string, args ...any) {
			fmt.Fprintf(w, "event: message\ndata: "+format+"\n\n", args...)
			_ = http.NewResponseController(w).Flush()
		}
		switch m.Method {
		case "":
			answers <- m.Error != nil
			w.WriteHeader(http.StatusAccepted)
			return
		case "initialize", "tools/list", "tools/call":
			w.Header().Set("Content-Type", "text/event-stream")
			w.Header().Set("Mcp-Session-Id", "s")
		case "server/discover":
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"Method not found"}}`, m.ID)
			return
		default:
			w.WriteHeader(http.StatusAccepted)
			return
		}
		switch m.Method {
		case "initialize":
			say(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"asking","version":"1"}}}`, m.ID)
		case "tools/list":
			say(`{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"ask","inputSchema":{"type":"object"}}]}}`, m.ID)
		case "tools/call":
			refused := true
			for n, method := range []string{"sampling/createMessage", "elicitation/create", "roots/list"} {
				say(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":{"messages":[],"maxTokens":1,"message":"?","requestedSchema":{}}}`, 90+n, method)
				select {
				case no := <-answers:
					refused = refused && no
				case <-time.After(20 * time.Second):
					refused = false
				}
			}
			text := map[bool]string{true: "refused", false: "granted, or never answered"}[refused]
			say(`{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":%q}]}}`, m.ID, text)
		}
	})
}
