package mcp

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"aob.dev/writ/intents/catalog"
)

// oldServer is one of protocol 2025-06-18 with sessions.
type oldServer struct {
	status int    // that a request in an unknown session gets
	body   string // likewise; ID stands for the id
	ping   string // answer to a ping
	call   func(w http.ResponseWriter, id string) bool

	mu       sync.Mutex
	sessions int // that were begun
	known    string
	calls    int
}

// forget is a restart.
func (s *oldServer) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known = ""
}

func (s *oldServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var req struct {
		ID     json.RawMessage
		Method string
	}
	if r.Method != http.MethodPost {
		http.NotFound(w, r)
		return
	}
	session := r.Header.Get("Mcp-Session-Id")
	raw, _ := io.ReadAll(r.Body)
	if json.Unmarshal(raw, &req) != nil || session != "" && session != s.known {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(s.status)
		_, _ = io.WriteString(w, strings.ReplaceAll(s.body, "ID", string(req.ID)))
		return
	}
	result := `{}`
	switch req.Method {
	case "initialize":
		s.sessions++
		s.known = fmt.Sprint("s", s.sessions)
		w.Header().Set("Mcp-Session-Id", s.known)
		result = `{"protocolVersion":"2025-06-18","capabilities":{"tools":{},"resources":{}},"serverInfo":{"name":"x","version":"1"}}`
	case "tools/list":
		result = `{"tools":[{"name":"act","inputSchema":{"type":"object"}}]}`
	case "resources/read":
		result = `{"contents":[{"uri":"a:b","text":"x"}]}`
	case "tools/call":
		if s.calls++; s.call != nil && s.call(w, string(req.ID)) {
			return
		}
		result = `{"content":[{"type":"text","text":"done"}]}`
	case "ping":
		if s.ping != "" {
			result = s.ping
		}
	case "server/discover":
		result = "error"
	default:
		w.WriteHeader(http.StatusAccepted)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if result == "error" {
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}`, req.ID)
		return
	}
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, req.ID, result)
}

// forgetting are the ways to say that a session is unknown.
var forgetting = map[string]struct {
	status int
	body   string
}{
	"400":             {400, "no such session"},
	"400 and error":   {400, `{"jsonrpc":"2.0","id":ID,"error":{"code":-32000,"message":"Bad Request: No valid session ID provided"}}`},
	"400 without id":  {400, `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"x"}}`},
	"404":             {404, ""},
	"404 and error":   {404, `{"jsonrpc":"2.0","id":ID,"error":{"code":-32001,"message":"Session not found"}}`},
	"410":             {410, ""},
	"503":             {503, "no such session"},
	"200 and error":   {200, `{"jsonrpc":"2.0","id":ID,"error":{"code":-32001,"message":"Session not found"}}`},
	"200, internal":   {200, `{"jsonrpc":"2.0","id":ID,"error":{"code":-32603,"message":"x"}}`},
	"200 without id":  {200, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"x"}}`},
	"200 and nothing": {200, ""},
}

// TestSessionForgotten: however a server says that it has forgotten a session, nothing fails, and each
// call runs once.
func TestSessionForgotten(t *testing.T) {
	for name, how := range forgetting {
		t.Run(name, func(t *testing.T) {
			s := &oldServer{status: how.status, body: how.body}
			c := dial(t, serve(t, s), quick())
			for n, safe := range []bool{false, false, true} {
				if _, err := c.Call(t.Context(), "act", nil, CallMeta{RetrySafe: safe}); err != nil || s.calls != n+1 {
					t.Fatalf("call %d: ran %d times, %v", n, s.calls, err)
				}
				s.forget()
			}
			if list, err := c.Manifests(t.Context()); err != nil || len(list) != 2 {
				t.Errorf("listed %v, %v", list, err)
			}
			s.forget()
			if res, err := c.Call(t.Context(), catalog.ReadSkill, json.RawMessage(`{"uri":"a:b"}`), CallMeta{RetrySafe: true}); err != nil || res.Text != "x" {
				t.Errorf("read %v, %v", res, err)
			}
			if s.sessions != 5 {
				t.Errorf("%d sessions", s.sessions)
			}
		})
	}
}

// TestSessionForgottenMeanwhile: a call that must not run twice is not sent again once it may have
// been taken, whatever has become of its session.
func TestSessionForgottenMeanwhile(t *testing.T) {
	stream := func(w http.ResponseWriter, _ string) { // to be resumed, which gets 404
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "id: 1\nretry: 10\ndata: \n\n")
	}
	ways := map[string]func(http.ResponseWriter, string){"stream cut off": stream}
	for name, how := range forgetting {
		if how.status != http.StatusNotFound {
			ways[name] = func(w http.ResponseWriter, id string) {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(how.status)
				_, _ = io.WriteString(w, strings.ReplaceAll(how.body, "ID", id))
			}
		}
	}
	for name, answer := range ways {
		t.Run(name, func(t *testing.T) {
			s := &oldServer{status: 404}
			s.call = func(w http.ResponseWriter, id string) bool {
				s.known = ""
				answer(w, id)
				return true
			}
			c := dial(t, serve(t, s), quick())
			if _, err := c.Call(t.Context(), "act", nil, CallMeta{}); err == nil || s.calls != 1 {
				t.Errorf("ran %d times, %v", s.calls, err)
			}
		})
	}
}

// TestSessionKept: a failed call costs no session that its server knows, nor does a server that answers no ping.
func TestSessionKept(t *testing.T) {
	refuse := func(w http.ResponseWriter, id string) bool {
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32602,"message":"bad n"}}`, id)
		return true
	}
	for ping, most := range map[string]int{`{}`: 1, `error`: 1, `7,"error":{"code":-32600,"message":"x"}`: 2} {
		s := &oldServer{ping: ping, call: func(w http.ResponseWriter, id string) bool {
			w.Header().Set("Content-Type", "application/json")
			return refuse(w, id)
		}}
		c := dial(t, serve(t, s), quick())
		for _, safe := range []bool{false, true, false, true} {
			if _, err := c.Call(t.Context(), "act", nil, CallMeta{RetrySafe: safe}); !errors.Is(err, ErrTool) {
				t.Errorf("ping %s: %v", ping, err)
			}
		}
		if s.sessions > most || s.calls != 4 {
			t.Errorf("ping %s: %d sessions, %d calls", ping, s.sessions, s.calls)
		}
	}
}
