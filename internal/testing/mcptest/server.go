// Package mcptest has a server that lists tools and runs none, for tests of listings.
package mcptest

import (
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"
)

// Tool is one tool of a server.
type Tool struct {
	Name, Description string
	ReadOnly          bool
	Idempotent        bool
	Destructive       bool
}

// Server is the part of MCP over streamable HTTP that listing needs.
type Server struct {
	t    testing.TB
	Addr string

	mu    sync.Mutex // guards tools
	tools []Tool
	http  *httptest.Server
}

// New starts a server that ends with the test.
func New(t testing.TB, tools ...Tool) *Server {
	t.Helper()
	s := &Server{t: t, tools: tools}
	s.Start("127.0.0.1:0")
	t.Cleanup(s.Stop)
	return s
}

// URL of its MCP interface.
func (s *Server) URL() string { return "http://" + s.Addr + "/mcp" }

// Set replaces the tools.
func (s *Server) Set(tools ...Tool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tools = tools
}

// Start listens at an address.
func (s *Server) Start(addr string) {
	s.t.Helper()
	l, err := new(net.ListenConfig).Listen(s.t.Context(), "tcp", addr)
	if err != nil {
		s.t.Fatal(err)
	}
	s.Addr = l.Addr().String()
	s.http = &httptest.Server{Listener: l, Config: &http.Server{Handler: s, ReadHeaderTimeout: time.Minute}}
	s.http.Start()
}

// Stop takes it down; Start at the same address brings it back.
func (s *Server) Stop() {
	if s.http != nil {
		s.http.CloseClientConnections()
		s.http.Close()
		s.http = nil
	}
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var req struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
	}
	if r.Method != http.MethodPost || json.NewDecoder(r.Body).Decode(&req) != nil {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	var result any
	switch req.Method {
	case "initialize":
		result = map[string]any{
			"protocolVersion": "2025-03-26", "capabilities": map[string]any{"tools": map[string]any{}},
			"serverInfo": map[string]any{"name": "test", "version": "1"},
		}
	case "tools/list":
		result = map[string]any{"tools": s.list()}
	case "ping":
		result = map[string]any{}
	default: // notifications
		w.WriteHeader(http.StatusAccepted)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"jsonrpc": "2.0", "id": req.ID, "result": result}) // fails only with the connection
}

func (s *Server) list() []map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := []map[string]any{}
	for _, x := range s.tools {
		annotations := map[string]any{}
		if x.ReadOnly {
			annotations["readOnlyHint"] = true
		}
		if x.Idempotent {
			annotations["idempotentHint"] = true
		}
		if x.Destructive {
			annotations["destructiveHint"] = true
		}
		out = append(out, map[string]any{"name": x.Name, "description": x.Description, "inputSchema": map[string]any{"type": "object"}, "annotations": annotations})
	}
	return out
}
