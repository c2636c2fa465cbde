package quakes

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"testing"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// connect serves the skills on loopback and returns a client of them.
func connect(t *testing.T, opts ...client.ClientOption) *client.Client {
	t.Helper()
	url, err := Serve(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	tr, err := transport.NewStreamableHTTP(url)
	if err != nil {
		t.Fatal(err)
	}
	c := client.NewClient(tr, opts...)
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if _, err := c.Initialize(t.Context(), mcp.InitializeRequest{}); err != nil {
		t.Fatal(err)
	}
	return c
}

func call(t *testing.T, c *client.Client, name, args string) *mcp.CallToolResult {
	t.Helper()
	req := mcp.CallToolRequest{}
	req.Params.Name, req.Params.Arguments = name, json.RawMessage(args)
	res, err := c.CallTool(t.Context(), req)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return res
}

func text(t *testing.T, r *mcp.CallToolResult) string {
	t.Helper()
	if len(r.Content) != 1 {
		t.Fatalf("got %d contents, want 1", len(r.Content))
	}
	return r.Content[0].(mcp.TextContent).Text
}

// validate fails unless doc satisfies the embedded schema.
func validate(t *testing.T, name string, doc []byte) {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema(name)))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("mem:"+name, v); err != nil {
		t.Fatal(err)
	}
	sch, err := c.Compile("mem:" + name)
	if err != nil {
		t.Fatal(err)
	}
	d, err := jsonschema.UnmarshalJSON(bytes.NewReader(doc))
	if err != nil {
		t.Fatal(err)
	}
	if err := sch.Validate(d); err != nil {
		t.Errorf("%s: %v", name, err)
	}
}

func TestFeedIsTheOriginal(t *testing.T) {
	b, err := Feed()
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(b)
	if got := hex.EncodeToString(sum[:]); got != FeedSHA256 {
		t.Errorf("SHA-256 of the feed is %s, want %s", got, FeedSHA256)
	}
	if lines := bytes.Count(b, []byte("\n")) + 1; lines != 1707 {
		t.Errorf("the feed has %d lines, want one for each of its 1707 features", lines)
	}
	validate(t, "feed_output", b)
}

func TestFeedSchemaRefusesOtherData(t *testing.T) {
	b, _ := Feed()
	broken := bytes.Replace(b, []byte(`"mag":2,`), []byte(`"mag":"two",`), 1)
	v, _ := jsonschema.UnmarshalJSON(bytes.NewReader(schema("feed_output")))
	c := jsonschema.NewCompiler()
	if err := c.AddResource("mem:feed", v); err != nil {
		t.Fatal(err)
	}
	d, err := jsonschema.UnmarshalJSON(bytes.NewReader(broken))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.MustCompile("mem:feed").Validate(d); err == nil {
		t.Error("a magnitude that is a text passed the schema")
	}
}

func TestFeedOverMCP(t *testing.T) {
	for name, opts := range map[string][]client.ClientOption{
		"2026-07-28": nil,
		"legacy":     {client.WithLegacyProtocolOnly()}, //nolint:staticcheck // SA1019: servers of that era are out there
	} {
		t.Run(name, func(t *testing.T) {
			r := call(t, connect(t, opts...), "earthquake_feed", `{}`)
			want, _ := Feed()
			if got := text(t, r); got != string(want) {
				t.Errorf("the text has %d bytes and is not the feed as received (%d bytes)", len(got), len(want))
			}
			var compact bytes.Buffer
			if err := json.Compact(&compact, want); err != nil {
				t.Fatal(err)
			}
			var got bytes.Buffer
			if err := json.Compact(&got, r.RawStructuredContent); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(unescape(t, got.Bytes()), unescape(t, compact.Bytes())) {
				t.Error("the structured content is not the feed object")
			}
			validate(t, "feed_output", r.RawStructuredContent)
		})
	}
}

// unescape removes what an encoder may change in texts (such as \u0026).
func unescape(t *testing.T, b []byte) []byte {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestManifests(t *testing.T) {
	res, err := connect(t).ListTools(t.Context(), mcp.ListToolsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if len(res.Tools) != 2 {
		t.Fatalf("got %d tools, want 2", len(res.Tools))
	}
	for _, tool := range res.Tools {
		a := tool.Annotations
		if a.ReadOnlyHint == nil || !*a.ReadOnlyHint || a.IdempotentHint == nil || !*a.IdempotentHint {
			t.Errorf("%s does not say that it only reads", tool.Name)
		}
		if tool.Description == "" || tool.OutputSchema.Type != "object" || tool.InputSchema.Type != "object" {
			t.Errorf("%s: description or schemas are missing", tool.Name)
		}
	}
}

func TestUnknownArgumentIsRefused(t *testing.T) {
	r := call(t, connect(t), "earthquake_feed", `{"since":"today"}`)
	if !r.IsError {
		t.Error("an argument that the feed does not know was ignored")
	}
}

func TestServeStopsWithContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	url, err := Serve(ctx)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	for { // Close runs on another goroutine; each request meets an open or a closed port
		resp, err := http.Get(url)
		if err != nil {
			return
		}
		resp.Body.Close()
	}
}
