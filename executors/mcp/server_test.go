package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	wire "github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

// stdioServer is the variable that makes the test binary a skill server.
const stdioServer = "WRIT_TEST_STDIO_SERVER"

// otherServers are served in the place of the test server, by the value of that variable.
var otherServers = map[string]func() *server.MCPServer{}

func TestMain(m *testing.M) {
	switch os.Getenv(stdioServer) {
	case "":
		os.Exit(m.Run())
	case "stubborn": // ignores the end of its input
		go func() { _ = server.ServeStdio(testServer()) }()
		select {}
	case "noisy":
		noisyServer()
	case "silent":
		os.Exit(3)
	default:
		fmt.Fprintf(os.Stderr, "ready \x1b[31mred\x07\n")
		serve := testServer
		if other, ok := otherServers[os.Getenv(stdioServer)]; ok {
			serve = other
		}
		if err := server.ServeStdio(serve()); err != nil {
			os.Exit(1)
		}
	}
}

const (
	pairSchema = `{"type":"object","required":["n"],"properties":{"n":{"type":"integer"}},"additionalProperties":false}`
	anySchema  = `{"type":"object"}`
)

func toolOf(name, output string) wire.Tool {
	t := wire.NewToolWithRawSchema(name, "The tool "+name+".", json.RawMessage(anySchema))
	t.Annotations = wire.ToolAnnotation{}
	if output != "" {
		t.RawOutputSchema = json.RawMessage(output)
	}
	return t
}

func answer(structured, text string) server.ToolHandlerFunc {
	return func(context.Context, wire.CallToolRequest) (*wire.CallToolResult, error) {
		r := wire.NewToolResultText(text)
		if structured != "" {
			r.RawStructuredContent = json.RawMessage(structured)
		}
		return r, nil
	}
}

// testServer is a real server with well and badly behaved tools.
func testServer() *server.MCPServer {
	s := server.NewMCPServer("test", "1")
	s.AddTool(toolOf("echo", ""), func(_ context.Context, req wire.CallToolRequest) (*wire.CallToolResult, error) {
		seen := map[string]any{"input": req.Params.RawArguments, "key": req.Header.Get("Idempotency-Key"), "auth": req.Header.Get("Authorization")}
		if m := req.Params.Meta; m != nil {
			meta := maps.Clone(m.AdditionalFields)
			maps.DeleteFunc(meta, func(k string, _ any) bool { return !strings.HasPrefix(k, "aob.dev/") })
			seen["meta"] = meta
		}
		return wire.NewToolResultStructuredOnly(seen), nil
	})
	s.AddTool(toolOf("pair", pairSchema), answer(`{"n":1}`, "one"))
	s.AddTool(toolOf("liar", pairSchema), answer(`{"n":"1\u001b[31m"}`, "one"))
	s.AddTool(toolOf("mute", pairSchema), answer("", "just words"))
	s.AddTool(toolOf("textual", pairSchema), answer("", ` {"n":2}`))
	s.AddTool(toolOf("lines", ""), answer("", "a\nb\n\tc & <d>"))
	s.AddTool(toolOf("large", ""), answer("", strings.Repeat("x", 100_000)))
	s.AddTool(toolOf("broken", ""), func(context.Context, wire.CallToolRequest) (*wire.CallToolResult, error) {
		return wire.NewToolResultError("no such outlet\x1b[2J"), nil
	})
	s.AddTool(toolOf("picture", ""), func(context.Context, wire.CallToolRequest) (*wire.CallToolResult, error) {
		return &wire.CallToolResult{Content: []wire.Content{wire.NewImageContent("AAAA", "image/png")}}, nil
	})
	s.AddTool(toolOf("corrupt", ""), func(context.Context, wire.CallToolRequest) (*wire.CallToolResult, error) {
		return &wire.CallToolResult{Content: []wire.Content{wire.NewImageContent("a picture", "image/png")}}, nil
	})
	s.AddTool(toolOf("mixed", ""), func(context.Context, wire.CallToolRequest) (*wire.CallToolResult, error) {
		return &wire.CallToolResult{Content: []wire.Content{
			wire.NewTextContent("two lines"),
			wire.NewEmbeddedResource(wire.TextResourceContents{URI: "file:///a.txt", MIMEType: "text/plain", Text: "of text"}),
			wire.NewEmbeddedResource(wire.BlobResourceContents{URI: "file:///a.gz", MIMEType: "no type\n", Blob: "AQI="}),
			wire.NewAudioContent("AQ==", "audio/wav; rate=8000"),
			wire.NewResourceLink("https://docs.example/a", "the manual", "", "text/html"),
		}}, nil
	})
	s.AddTool(toolOf("talker", ""), func(ctx context.Context, req wire.CallToolRequest) (*wire.CallToolResult, error) {
		to := server.ServerFromContext(ctx)
		say := map[string]any{"level": "warning", "logger": "crm", "data": map[string]any{"rows\x1b[2J": 3}}
		work := map[string]any{"progressToken": req.Params.Meta.ProgressToken, "progress": 1, "total": 2, "message": "half of it"}
		if err := errors.Join(to.SendNotificationToClient(ctx, "notifications/message", say), to.SendNotificationToClient(ctx, "notifications/progress", work)); err != nil {
			return nil, err
		}
		<-ctx.Done() // the library's server loses what is said right before an answer
		return nil, ctx.Err()
	})
	s.AddTool(toolOf("slow", ""), func(ctx context.Context, _ wire.CallToolRequest) (*wire.CallToolResult, error) {
		fmt.Fprintln(os.Stderr, "slow has begun")
		<-ctx.Done()
		fmt.Fprintln(os.Stderr, "slow was cancelled")
		return nil, ctx.Err()
	})
	s.AddTool(toolOf("environment", ""), func(context.Context, wire.CallToolRequest) (*wire.CallToolResult, error) {
		return wire.NewToolResultText(strings.Join(os.Environ(), "\n")), nil
	})
	s.AddTool(toolOf("pid", ""), func(context.Context, wire.CallToolRequest) (*wire.CallToolResult, error) {
		return wire.NewToolResultText(fmt.Sprint(os.Getpid())), nil
	})
	s.AddTool(toolOf("spawn", ""), func(context.Context, wire.CallToolRequest) (*wire.CallToolResult, error) {
		cmd := exec.Command("sleep", "600") // inherits nothing of ours but the process group
		if err := cmd.Start(); err != nil {
			return nil, err
		}
		return wire.NewToolResultText(fmt.Sprint(cmd.Process.Pid)), nil
	})
	s.AddTool(toolOf("die", ""), func(context.Context, wire.CallToolRequest) (*wire.CallToolResult, error) {
		os.Exit(7)
		return nil, nil
	})
	return s
}

// legacyOnly answers as servers before protocol 2026-07-28 do: they do not
// know server/discover.
func legacyOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var req struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
		}
		if json.Unmarshal(body, &req) == nil && req.Method == "server/discover" {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"Method not found"}}`, req.ID)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		next.ServeHTTP(w, r)
	})
}

// site is an HTTP server that can go down and come back, always under the
// same URL; the port behind it may differ, since the old one may be taken.
type site struct {
	t    *testing.T
	addr atomic.Value
	srv  *http.Server
}

func newSite(t *testing.T, h http.Handler) *site {
	t.Helper()
	s := &site{t: t}
	s.up(h)
	t.Cleanup(s.down)
	return s
}

func (s *site) up(h http.Handler) {
	s.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.t.Fatal(err)
	}
	s.addr.Store(l.Addr().String())
	s.srv = &http.Server{Handler: h}
	go func(srv *http.Server) { _ = srv.Serve(l) }(s.srv) // until down
}

func (s *site) down()          { _ = s.srv.Close() }
func (s *site) source() Source { return Source{URL: "http://localhost/mcp"} }

// options lead every connection to where the site is now.
func (s *site) options() Options {
	o := quick()
	o.RoundTripper = &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, s.addr.Load().(string))
	}}
	return o
}

func streamable(s *server.MCPServer, opts ...server.StreamableHTTPOption) http.Handler {
	return server.NewStreamableHTTPServer(s, opts...)
}

func serve(t *testing.T, h http.Handler) Source {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(func() {
		srv.CloseClientConnections()
		srv.Close()
	})
	return Source{URL: srv.URL + "/mcp"}
}

// self is the test binary as a stdio skill server, with variables in its environment.
func self(t *testing.T, env ...string) Source {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return Source{Command: []string{exe, "-test.run=^$"}, Settings: Settings{Env: append([]string{stdioServer + "=yes"}, env...)}}
}

// quick are options for tests: no waits, and a bound that only a test of the
// bound reaches.
func quick() Options { return Options{Backoff: -1, StartTimeout: time.Minute, Timeout: time.Minute} }

func dial(t *testing.T, src Source, opt Options) *Client {
	t.Helper()
	c, err := Dial(t.Context(), src, opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// peers are the three ways to reach the test server.
func peers(t *testing.T) map[string]Source {
	t.Helper()
	return map[string]Source{
		"http":   serve(t, streamable(testServer())),
		"legacy": serve(t, legacyOnly(streamable(testServer(), server.WithStateful(true)))),
		"stdio":  self(t),
	}
}
