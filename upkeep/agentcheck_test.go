package upkeep_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	wire "github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"aob.dev/writ/internal/egress"
	"aob.dev/writ/upkeep"
)

// remoteAgent is a real MCP server whose agent has one fault, or none.
type remoteAgent struct {
	fault string
	until chan struct{} // a hanging answer ends

	mu      sync.Mutex
	message string // the first message that names a password of somebody, where messages mix
}

func (r *remoteAgent) handle(_ context.Context, q wire.CallToolRequest) (*wire.CallToolResult, error) {
	args := q.GetArguments()
	input, _ := args["raw_input"].(string)
	_, history := args["turn_history"].([]any)
	state, known := args["workflow_state"].(map[string]any)
	if !history || !known {
		switch r.fault {
		case "trace":
			return wire.NewToolResultError("Traceback (most recent call last):\n  boom"), nil
		case "crash":
			panic(http.ErrAbortHandler)
		case "names":
			return wire.NewToolResultError("bad message: " + input), nil
		}
		return wire.NewToolResultError("turn_history and workflow_state are needed"), nil
	}
	answer := map[string]any{"content": "I reset your password. " + input, "workflow_complete": false, "workflow_state": map[string]any{"step": "account"}}
	if strings.Contains(input, "Goodbye") {
		answer = map[string]any{"content": "Goodbye.", "workflow_complete": true}
	}
	switch r.fault {
	case "content":
		delete(answer, "content")
	case "text":
		return wire.NewToolResultText("I reset your password."), nil
	case "hangs":
		<-r.until
	case "ends with state":
		answer["workflow_complete"], answer["workflow_state"] = true, map[string]any{"step": "end"}
	case "own state":
		if len(state) > 0 {
			return nil, errors.New("what is this state?")
		}
	case "mixes":
		r.mu.Lock()
		defer r.mu.Unlock()
		if strings.Contains(input, "password of") {
			if r.message == "" {
				r.message = input
			}
			answer["content"] = r.message
		}
	}
	raw, err := json.Marshal(answer)
	return wire.NewToolResultText(string(raw)), err
}

// serveAgent serves it, with a page of its health.
func serveAgent(t *testing.T, fault string) *httptest.Server {
	t.Helper()
	r := &remoteAgent{fault: fault, until: make(chan struct{})}
	s := server.NewMCPServer("agent", "1", server.WithToolCapabilities(false))
	name := "handle_message"
	if fault == "tool" {
		name = "talk"
	}
	s.AddTool(wire.NewToolWithRawSchema(name, "Handles a message.", json.RawMessage(`{"type":"object"}`)), r.handle)
	mux := http.NewServeMux()
	mux.Handle("/mcp", server.NewStreamableHTTPServer(s, server.WithStateLess(true), server.WithDisableStreaming(true)))
	if fault != "health" {
		mux.HandleFunc("GET /health", func(http.ResponseWriter, *http.Request) {})
	}
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	t.Cleanup(func() { close(r.until) })
	return srv
}

func fileOf(endpoint string) string {
	return "agent_id: desk\ndisplay_name: Desk\ndescription: Resets passwords.\nendpoint: " + endpoint +
		"\ntype: mcp\nis_default: true\nconfidence_threshold: 0\nclarification_required: false\nexamples: [Reset my password]\n"
}

// TestAgentCheck: an agent without faults passes every point that can be checked, and one with a
// fault fails exactly its point.
func TestAgentCheck(t *testing.T) {
	for fault, point := range map[string]int{
		"": 0, "tool": 1, "content": 2, "text": 2, "trace": 3, "crash": 3, "hangs": 4, "ends with state": 5, "own state": 6,
		"file": 7, "another's file": 7, "private": 8, "health": 9, "names": 14, "mixes": 15,
	} {
		t.Run(fault, func(t *testing.T) {
			srv := serveAgent(t, fault)
			at := srv.URL + "/mcp"
			check := upkeep.AgentCheck{Endpoint: at, File: []byte(fileOf(at)), Timeout: 5 * time.Second, Named: egress.Transport(at), Public: egress.Transport(at)}
			switch fault {
			case "hangs":
				check.Timeout = 3 * time.Second
			case "file":
				check.File = append(check.File, "surprise: yes\n"...)
			case "another's file":
				check.File = []byte(fileOf("https://other.example/mcp"))
			case "private":
				check.Public = egress.Transport()
			}
			got := map[string][]int{}
			for i, p := range check.Run(t.Context()) {
				if p.Point != i+1 || p.Title == "" || (p.Do == "") != (p.State == upkeep.PointPass) {
					t.Errorf("%+v", p)
				}
				got[p.State] = append(got[p.State], p.Point)
				if p.State == upkeep.PointFail {
					t.Log(p.Point, p.Title, "-", p.Found)
				}
			}
			var want []int
			if point > 0 {
				want = []int{point}
			}
			if d := cmp.Diff(want, got[upkeep.PointFail]); d != "" {
				t.Errorf("it fails: %s\n%v", d, got)
			}
			if d := cmp.Diff([]int{10, 11, 12, 13, 14}, got[upkeep.PointUnknown]); fault == "" && d != "" {
				t.Errorf("not seen: %s", d)
			}
		})
	}
}
