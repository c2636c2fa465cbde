package main

import (
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/rogpeppe/go-internal/testscript"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"aob.dev/writ/internal/demo/quakes"
)

// act is what a model does in one of its replies.
type act struct {
	Calls    []struct{ Tool, Args string } // by the ends of their names; with several all at once
	Text     string                        // empty: what each of those that it asked has said, in turn
	Together int                           // waits until so many do
	Hangs    bool
	Fails    bool
}

// acting serves a model, at $ACTING: acts.json says what it does in each of its replies to a
// message, by the first line of its prompt, and the last line of the message where that is there, too. prompts.jsonl has what it was sent.
func acting(ts *testscript.TestScript, _ *world, _ []string) {
	var mu sync.Mutex
	all := &together{full: make(chan struct{})}
	srv := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		var req actRequest
		body, err := io.ReadAll(r.Body)
		if err != nil || json.Unmarshal(body, &req) != nil || len(req.Messages) == 0 {
			return
		}
		mu.Lock()
		_ = appendTo(ts.MkAbs("prompts.jsonl"), body)
		mu.Unlock()
		a := req.act(ts.MkAbs("acts.json"))
		if a.Together > 0 {
			all.come(r.Context(), a.Together)
		}
		switch {
		case a.Hangs:
			<-r.Context().Done()
		case a.Fails:
			http.Error(rw, `{"error":{"message":"Traceback (most recent call last): it broke","type":"invalid_request_error"}}`, http.StatusBadRequest)
		default:
			rw.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(rw, `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":%s,"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n", req.delta(a))
		}
	}))
	ts.Defer(func() {
		srv.CloseClientConnections()
		srv.Close()
	})
	ts.Setenv("ACTING", srv.URL)
}

// together are replies that wait for each other.
type together struct {
	mu   sync.Mutex
	here int
	full chan struct{}
}

func (t *together) come(ctx context.Context, n int) {
	t.mu.Lock()
	full := t.full
	if t.here++; t.here == n {
		close(full)
		t.here, t.full = 0, make(chan struct{})
	}
	t.mu.Unlock()
	select {
	case <-full:
	case <-ctx.Done():
	}
}

type actRequest struct {
	Messages []struct{ Role, Content string }
	Tools    []struct{ Function struct{ Name string } }
}

// act is the one for this reply: they are counted from the user's last message.
func (r actRequest) act(file string) act {
	var acts map[string][]act
	raw, err := os.ReadFile(file)
	if err != nil || json.Unmarshal(raw, &acts) != nil {
		return act{Fails: true}
	}
	n, message := 0, ""
	for _, m := range r.Messages {
		switch m.Role {
		case "user":
			n, message = 0, m.Content[strings.LastIndex(m.Content, "\n")+1:] // a note with the date stands before it
		case "assistant":
			n++
		}
	}
	name, _, _ := strings.Cut(r.Messages[0].Content, "\n")
	mine, ok := acts[name+" "+message]
	if !ok {
		mine = acts[name]
	}
	if len(mine) == 0 {
		return act{Fails: true}
	}
	return mine[min(n, len(mine)-1)]
}

func (r actRequest) delta(a act) string {
	var calls []string
	for i, c := range a.Calls {
		name := c.Tool
		for _, t := range r.Tools {
			if strings.HasSuffix(t.Function.Name, c.Tool) {
				name = t.Function.Name
			}
		}
		args, _ := json.Marshal(c.Args) // of a string
		calls = append(calls, fmt.Sprintf(`{"index":%d,"id":"call_%d","type":"function","function":{"name":%q,"arguments":%s}}`, i, i, name, args))
	}
	if len(calls) > 0 && len(r.Tools) > 0 {
		return `{"tool_calls":[` + strings.Join(calls, ",") + `]}`
	}
	text, _ := json.Marshal(cmp.Or(a.Text, r.outcome())) // of a string
	return fmt.Sprintf(`{"content":%s}`, text)
}

// outcome is what came of what it asked, in words.
func (r actRequest) outcome() string {
	var said []string
	for _, m := range r.Messages {
		switch m.Role {
		case "user":
			said = nil
		case "tool":
			var got struct{ About, Text string }
			_ = json.Unmarshal([]byte(m.Content), &got) // of no object nothing is said
			if got.About != "" {
				got.Text = "I cannot reach " + got.About + " just now."
			}
			if got.Text != "" {
				said = append(said, got.Text)
			}
		}
	}
	return strings.Join(said, " ")
}

// enricher serves skills by these names, at $ENRICHER: each answers with envelope.json, or with the error
// in refusal.txt while that is there. calls.jsonl has what they were called with.
func enricher(ts *testscript.TestScript, _ *world, args []string) {
	want(ts, args, 1, "enricher NAME…")
	s := server.NewMCPServer("ccs", "1", server.WithToolCapabilities(false))
	no, yes := false, true
	var mu sync.Mutex
	for _, name := range args {
		tool := mcp.NewToolWithRawSchema(name, "Finds "+name+".", json.RawMessage(`{"type":"object","properties":{"principal":{"type":"string"}}}`))
		tool.RawOutputSchema = json.RawMessage(`{"type":"object","properties":{"status":{"enum":["ok","partial","error"]},"payload":{},"domain_type":{"type":"string"},"enricher_id":{"type":"string"},"principal":{"type":"string"},"version":{"type":"string"},"partial":{"type":"array"},"cache_meta":{"type":"object"}}}`)
		tool.Annotations = mcp.ToolAnnotation{ReadOnlyHint: &yes, DestructiveHint: &no, IdempotentHint: &yes}
		s.AddTool(tool, func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			mu.Lock()
			defer mu.Unlock()
			line, err := json.Marshal(map[string]any{"name": name, "arguments": req.Params.Arguments})
			raw, unread := os.ReadFile(ts.MkAbs("envelope.json"))
			if err := errors.Join(err, unread, appendTo(ts.MkAbs("calls.jsonl"), line)); err != nil {
				return nil, err
			}
			if text, err := os.ReadFile(ts.MkAbs("refusal.txt")); err == nil {
				return mcp.NewToolResultError(strings.TrimSpace(string(text))), nil
			}
			r := mcp.NewToolResultText(string(raw))
			r.RawStructuredContent = raw
			return r, nil
		})
	}
	mux := http.NewServeMux()
	mux.Handle(quakes.Path, server.NewStreamableHTTPServer(s, server.WithStateLess(true), server.WithDisableStreaming(true)))
	srv := httptest.NewServer(mux)
	ts.Defer(func() {
		srv.CloseClientConnections()
		srv.Close()
	})
	ts.Setenv("ENRICHER", "name=ccs trust=true -- "+srv.URL+quakes.Path)
}

// collecting is a collector of OpenTelemetry, at $COLLECTOR: spans.jsonl has the spans.
func collecting(ts *testscript.TestScript, _ *world, _ []string) {
	var mu sync.Mutex
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		in := io.Reader(r.Body)
		if r.Header.Get("Content-Encoding") == "gzip" {
			z, err := gzip.NewReader(in)
			if err != nil {
				return
			}
			in = z
		}
		body, err := io.ReadAll(in)
		var got collector.ExportTraceServiceRequest
		if err != nil || r.URL.Path != "/v1/traces" || proto.Unmarshal(body, &got) != nil {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		for _, of := range got.GetResourceSpans() {
			for _, scope := range of.GetScopeSpans() {
				for _, span := range scope.GetSpans() {
					span.Attributes, span.Links = nil, nil
					line, err := protojson.Marshal(span)
					_ = errors.Join(err, appendTo(ts.MkAbs("spans.jsonl"), line)) // a line that is missing fails the page
				}
			}
		}
	}))
	ts.Defer(srv.Close)
	ts.Setenv("COLLECTOR", srv.URL)
}
