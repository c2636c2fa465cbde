package main

import (
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
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/rogpeppe/go-internal/testscript"

	"aob.dev/writ/intents"
	"aob.dev/writ/internal/demo/quakes"
)

// staff serves a model, at $STAFF: as the planner and the executor it replies with the next line of
// planner.jsonl and executor.jsonl, {TOOL: ARGUMENTS}, and fails without one; in every other part it
// says one sentence. prompts.jsonl has what it was asked.
func staff(ts *testscript.TestScript, _ *world, _ []string) {
	var mu sync.Mutex
	serve(ts, "STAFF", "", http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		delta, err := staffed(ts, body)
		if err != nil {
			http.Error(rw, `{"error":{"message":"nobody knows what to do"}}`, http.StatusBadRequest)
			return
		}
		rw.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(rw, `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":%s,"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n", delta)
	}))
}

func staffed(ts *testscript.TestScript, body []byte) (delta string, err error) {
	if err := appendTo(ts.MkAbs("prompts.jsonl"), body); err != nil {
		return "", err
	}
	for role, begin := range map[string]string{"planner": "You are the planner", "executor": "You carry out one step"} {
		if !strings.Contains(string(body), begin) {
			continue
		}
		file := ts.MkAbs(role + ".jsonl")
		raw, err := os.ReadFile(file)
		if err != nil {
			return "", err
		}
		line, rest, _ := strings.Cut(string(raw), "\n")
		var call map[string]json.RawMessage
		if err := errors.Join(os.WriteFile(file, []byte(rest), 0o600), json.Unmarshal([]byte(line), &call)); err != nil {
			return "", err
		}
		for tool, args := range call {
			text, err := json.Marshal(string(args))
			return fmt.Sprintf(`{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":%q,"arguments":%s}}]}`, tool, text), err
		}
	}
	return `{"content":"This is what came of it."}`, nil
}

// brand serves skills, at $BRAND: those of FILE, {NAME: {about, output?}}, each of which answers what
// NAME.json says by then, and fails where there is none; it waits while there is a NAME.wait.
// brand.jsonl has what they were called with.
func brand(ts *testscript.TestScript, _ *world, args []string) {
	want(ts, args, 1, "brand FILE")
	var tools map[string]struct {
		About  string
		Output json.RawMessage
	}
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[0])), &tools))
	s := server.NewMCPServer("brand", "1", server.WithToolCapabilities(false))
	for name, t := range tools {
		tool := mcp.NewToolWithRawSchema(name, t.About, json.RawMessage(`{"type":"object","properties":{}}`))
		tool.RawOutputSchema = t.Output
		yes := true
		tool.Annotations = mcp.ToolAnnotation{ReadOnlyHint: &yes}
		s.AddTool(tool, func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			raw, err := branded(ctx, ts, name, req.Params.Arguments)
			if err != nil {
				return mcp.NewToolResultError(name + " is out of service"), nil //nolint:nilerr // the server answers so
			}
			r := mcp.NewToolResultText(string(raw))
			if t.Output != nil {
				r.RawStructuredContent = raw
			}
			return r, nil
		})
	}
	serve(ts, "BRAND", quakes.Path, server.NewStreamableHTTPServer(s, server.WithStateLess(true), server.WithDisableStreaming(true)))
}

func branded(ctx context.Context, ts *testscript.TestScript, name string, args any) (json.RawMessage, error) {
	line, err := json.Marshal(map[string]any{name: args})
	if err != nil {
		return nil, err
	}
	if err := appendTo(ts.MkAbs("brand.jsonl"), line); err != nil {
		return nil, err
	}
	for ctx.Err() == nil {
		if _, err := os.Stat(ts.MkAbs(name + ".wait")); err != nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	return os.ReadFile(ts.MkAbs(name + ".json"))
}

// serve serves at a path until the script ends, and names the address in a variable.
func serve(ts *testscript.TestScript, variable, path string, h http.Handler) {
	srv := httptest.NewServer(h)
	ts.Defer(func() {
		srv.CloseClientConnections()
		srv.Close()
	})
	ts.Setenv(variable, srv.URL+path)
}

// search serves an OpenSearch that has no index and takes every one, at $SEARCH: search.jsonl has
// what was put.
func search(ts *testscript.TestScript, _ *world, _ []string) {
	var mu sync.Mutex
	serve(ts, "SEARCH", "", http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		body, err := io.ReadAll(r.Body)
		if err == nil && r.Method == http.MethodPut {
			err = appendTo(ts.MkAbs("search.jsonl"), []byte(r.Method+" "+r.URL.Path+" "+string(body)))
		}
		if err != nil {
			return
		}
		rw.Header().Set("Content-Type", "application/json")
		if strings.HasPrefix(r.URL.Path, "/_alias") {
			rw.WriteHeader(http.StatusNotFound)
		}
		fmt.Fprint(rw, `{}`)
	}))
}

// ask asks a route as it is printed: ask KEY METHOD PATH [MEMBER=VALUE]… [@FILE]. The members of its path
// are filled in, and the body is that of the file.
func ask(ts *testscript.TestScript, w *world, args []string) {
	want(ts, args, 3, "ask KEY METHOD PATH [MEMBER=VALUE]… [@FILE]")
	path, body := args[2], ""
	for _, a := range args[3:] {
		if file, ok := strings.CutPrefix(a, "@"); ok {
			body = ts.ReadFile(file)
			continue
		}
		name, value, _ := strings.Cut(a, "=")
		path = strings.ReplaceAll(path, "{"+name+"}", value)
	}
	header := http.Header{"X-Api-Key": {args[0]}, "Content-Type": {"application/json"}}
	status, _, raw := request(ts, w, args[1], path, header, []byte(body))
	must[int](ts)(fmt.Fprintf(ts.Stdout(), "HTTP %d\n%s\n", status, raw))
}

// ends cancels plans that a script opened: ends NAME…, of plans $P and NAME.
func ends(ts *testscript.TestScript, w *world, args []string) {
	for _, name := range args {
		plan := ts.Getenv("P") + name
		signed, _ := w.sign(ts, intent{role: intents.RoleGateway, typ: "cancel", args: fmt.Sprintf(`{"plan_id":%q}`, plan), user: "ana", tenant: "default", roles: []string{"user"}, plan: plan, key: "end_" + name})
		if status, _, raw := request(ts, w, http.MethodPost, "/v1/intents", nil, signed); status != http.StatusOK {
			ts.Fatalf("%s: HTTP %d %s", plan, status, raw)
		}
	}
}
