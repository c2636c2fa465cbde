// Package quakes is the skill server of the demo: a week of real earthquakes
// as the USGS published it, and a skill that ranks rows. It speaks MCP over
// streamable HTTP and needs neither network nor key.
//
// Nothing outside this folder knows about earthquakes: agents meet the server
// as they meet any other, by the words of its manifests and its schemas.
//
//	earthquake_feed {}                                  -> the feed, 1.2 MB, one feature a line
//	rank {rows, by, descending: true}                   -> {rows: [{…, rank}]}
//
// Every tool only reads: readOnlyHint and idempotentHint are true.
package quakes

import (
	"bytes"
	"compress/gzip"
	"context"
	"embed"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

// Path is where the handler answers.
const Path = "/mcp"

// Version is the server's version in the handshake.
const Version = "1.0.0"

// headerTimeout bounds how long a client may take to send its request header.
const headerTimeout = 10 * time.Second

// Handler answers MCP requests at Path, in both protocol eras and without
// sessions. It is safe for concurrent use and has no goroutine.
func Handler() (http.Handler, error) {
	data, err := Feed()
	if err != nil {
		return nil, err
	}
	s := server.NewMCPServer("writ-demo-skills", Version, server.WithToolCapabilities(false))
	skills := []skill{feedSkill(data), rankSkill()}
	for _, sk := range skills {
		s.AddTool(sk.tool(), sk.handle)
	}
	mux := http.NewServeMux()
	mux.Handle(Path, server.NewStreamableHTTPServer(s, server.WithStateLess(true), server.WithDisableStreaming(true)))
	return mux, nil
}

// Serve listens on a free loopback port and answers until ctx ends, then
// closes every connection. It returns once the port is open, with the URL of
// the MCP endpoint.
func Serve(ctx context.Context) (url string, err error) {
	h, err := Handler()
	if err != nil {
		return "", err
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("demo skill server: %w", err)
	}
	srv := &http.Server{Handler: h, ReadHeaderTimeout: headerTimeout}
	context.AfterFunc(ctx, func() { _ = srv.Close() })
	go func() { _ = srv.Serve(l) }() // ends with srv.Close, so with ctx
	return "http://" + l.Addr().String() + Path, nil
}

// feedGzip is the USGS feed "All Earthquakes, Past Week" of 7 February 2018
// (public domain), compressed; its metadata names its origin.
//
//go:embed feed.json.gz
var feedGzip []byte

// feedLimit bounds the decompressed feed in bytes.
const feedLimit = 8 << 20

// FeedSHA256 is the SHA-256 of the feed as the USGS served it, in hex.
const FeedSHA256 = "a42702a83ffbae679f95d1fa53e2cae0bae13b21e599a68cdd50a44fc52129f7"

// Feed is the feed byte for byte as received: one JSON document of 1,219,853
// bytes, one feature a line. It is decompressed once; callers must not change it.
func Feed() ([]byte, error) { return feed() }

var feed = sync.OnceValues(func() ([]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(feedGzip))
	if err != nil {
		return nil, fmt.Errorf("demo feed: %w", err)
	}
	b, err := io.ReadAll(io.LimitReader(z, feedLimit+1))
	if err != nil {
		return nil, fmt.Errorf("demo feed: %w", err)
	}
	if len(b) > feedLimit {
		return nil, fmt.Errorf("demo feed: larger than %d bytes", feedLimit)
	}
	return b, z.Close()
})

func feedSkill(data []byte) skill {
	return skill{
		name: "earthquake_feed",
		description: "All earthquakes of one week, worldwide, as the USGS published them: " +
			"for each its magnitude (how strong it was), place, time, depth and more. Takes no input and returns the whole feed.",
		input:  schema("empty_input"),
		output: schema("feed_output"),
		handle: feedHandler(data),
	}
}

// feedHandler answers with the feed twice: as structured content, and as text
// with its lines as received (a sample of lines is then a sample of features).
func feedHandler(data []byte) server.ToolHandlerFunc {
	text := string(data)
	return func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if err := decode(req, &struct{}{}); err != nil {
			return mcp.NewToolResultError(err.Error()), nil
		}
		return structured(data, text), nil
	}
}

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
