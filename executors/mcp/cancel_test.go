package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"testing"

	wire "github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

// begunServer has one tool, which says when it begins and when its call is cancelled.
func begunServer(begun, ended chan<- struct{}) *server.MCPServer {
	s := server.NewMCPServer("begun", "1")
	s.AddTool(toolOf("wait", ""), func(ctx context.Context, _ wire.CallToolRequest) (*wire.CallToolResult, error) {
		begun <- struct{}{}
		<-ctx.Done()
		ended <- struct{}{}
		return nil, ctx.Err()
	})
	return s
}

// cancelRecorded passes all on, and tells which requests were cancelled, and which tool calls there were.
func cancelRecorded(next http.Handler, calls, cancels chan<- string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var req struct {
			ID     json.RawMessage
			Method string
			Params struct{ RequestID json.RawMessage }
		}
		if json.Unmarshal(body, &req) == nil {
			switch req.Method {
			case "tools/call":
				calls <- string(req.ID)
			case "notifications/cancelled":
				cancels <- string(req.Params.RequestID)
			}
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		next.ServeHTTP(w, r)
	})
}

// TestCancelled: giving up a call notifies the server: by the call's id where there is a session,
// by the end of the connection where there is none. The server's tool ends.
func TestCancelled(t *testing.T) {
	for _, session := range []bool{true, false} {
		begun, ended := make(chan struct{}, 1), make(chan struct{}, 1)
		calls, cancels := make(chan string, 1), make(chan string, 1)
		h := cancelRecorded(streamable(begunServer(begun, ended)), calls, cancels)
		if session {
			h = legacyOnly(cancelRecorded(streamable(begunServer(begun, ended), server.WithStateful(true)), calls, cancels))
		}
		c := dial(t, serve(t, h), quick())
		ctx, cancel := context.WithCancel(t.Context())
		failed := make(chan error, 1)
		go func() {
			_, err := c.Call(ctx, "wait", nil, CallMeta{})
			failed <- err
		}()
		<-begun
		cancel()
		wantKind(t, <-failed, ErrUnavailable)
		<-ended
		if id := <-calls; session {
			if got := <-cancels; got != id {
				t.Errorf("the request %s was cancelled, want %s", got, id)
			}
		}
	}
}

// TestCancelledChild: a child process is notified, too, and answers the next call.
func TestCancelledChild(t *testing.T) {
	said := newJournal()
	opt := quick()
	opt.Log = slog.New(slog.NewJSONHandler(said, nil))
	c := dial(t, self(t), opt)
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error, 1)
	go func() {
		_, err := c.Call(ctx, "slow", nil, CallMeta{})
		failed <- err
	}()
	said.wait("slow has begun")
	cancel()
	wantKind(t, <-failed, ErrUnavailable)
	said.wait("slow was cancelled")
	if _, err := c.Call(t.Context(), "pair", nil, CallMeta{}); err != nil {
		t.Errorf("the next call: %v", err)
	}
}
