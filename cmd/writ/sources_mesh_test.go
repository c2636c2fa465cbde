package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"syscall"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/rogpeppe/go-internal/testscript"
)

// hangup sends SIGHUP to writ, and says so.
func hangup(ts *testscript.TestScript, w *world, _ []string) {
	if w.up == nil {
		ts.Fatalf("it is not up")
	}
	ts.Check(w.up.cmd.Process.Signal(syscall.SIGHUP))
	ts.Logf("SIGHUP to %d", w.up.cmd.Process.Pid)
}

// serveAgent serves a remote agent, at $MY_AGENT_ENDPOINT on $AGENT_HOST: it answers each message with
// the next line of answers.jsonl, and everything with 500 while there is a file broken. messages.jsonl has
// the calls and what came back.
func serveAgent(ts *testscript.TestScript, _ *world, _ []string) {
	s := server.NewMCPServer("my-agent", "1", server.WithToolCapabilities(false))
	var mu sync.Mutex
	s.AddTool(mcp.NewTool("handle_message"), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		mu.Lock()
		defer mu.Unlock()
		answers := ts.MkAbs("answers.jsonl")
		raw, _ := os.ReadFile(answers) // none is an answer, too
		line, rest, _ := strings.Cut(string(raw), "\n")
		if err := os.WriteFile(answers, []byte(rest), 0o600); err != nil || line == "" {
			return nil, errors.Join(err, errors.New("no answer is left"))
		}
		return mcp.NewToolResultText(line), nil
	})
	mux := http.NewServeMux()
	mux.Handle("/mcp", server.NewStreamableHTTPServer(s, server.WithStateLess(true), server.WithDisableStreaming(true)))
	mux.HandleFunc("GET /health", func(http.ResponseWriter, *http.Request) {})
	srv := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if _, err := os.Stat(ts.MkAbs("broken")); err == nil {
			http.Error(rw, "broken", http.StatusInternalServerError)
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		answer := httptest.NewRecorder()
		mux.ServeHTTP(answer, r)
		if bytes.Contains(body, []byte(`"tools/call"`)) {
			mu.Lock()
			err = errors.Join(appendTo(ts.MkAbs("messages.jsonl"), body), appendTo(ts.MkAbs("messages.jsonl"), bytes.TrimSpace(answer.Body.Bytes())))
			mu.Unlock()
		}
		maps.Copy(rw.Header(), answer.Header())
		rw.WriteHeader(answer.Code)
		if _, bad := rw.Write(answer.Body.Bytes()); err != nil || bad != nil {
			return // who asked is gone
		}
	}))
	ts.Defer(func() {
		srv.CloseClientConnections()
		srv.Close()
	})
	ts.Setenv("MY_AGENT_ENDPOINT", srv.URL+"/mcp")
	ts.Setenv("AGENT_HOST", strings.TrimPrefix(srv.URL, "http://"))
}

// appendTo adds a line to a file.
func appendTo(file string, line []byte) error {
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(line, '\n'))
	return errors.Join(err, f.Close())
}

// choosing serves a model, at $CHOOSING: as the classifier it says the JSON in verdict.json, and in
// every other part one sentence. prompts.jsonl has what it was asked.
func choosing(ts *testscript.TestScript, _ *world, _ []string) {
	srv := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || appendTo(ts.MkAbs("prompts.jsonl"), body) != nil {
			return
		}
		delta := `{"content":"I can help with passwords. What exactly do you need?"}`
		if strings.Contains(string(body), `"final_result"`) {
			raw, err := os.ReadFile(ts.MkAbs("verdict.json"))
			if err != nil {
				rw.WriteHeader(http.StatusInternalServerError)
				return
			}
			args, _ := json.Marshal(strings.TrimSpace(string(raw))) // of a string
			delta = fmt.Sprintf(`{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"final_result","arguments":%s}}]}`, args)
		}
		rw.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(rw, `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":%s,"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n", delta)
	}))
	ts.Defer(func() {
		srv.CloseClientConnections()
		srv.Close()
	})
	ts.Setenv("CHOOSING", srv.URL)
}
