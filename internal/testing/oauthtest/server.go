package oauthtest

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// Server is an MCP server that takes tokens of an issuer alone. Its tools are whoami, which only reads, and note,
// which acts; both answer with the account of the token, and with the token itself if they are asked to.
type Server struct {
	*httptest.Server

	mu       sync.Mutex
	issuer   *Issuer
	sessions map[string]string // accounts by session
	crossed  bool
}

// NewServer starts one that ends with the test.
func NewServer(t testing.TB, issuer *Issuer) *Server {
	t.Helper()
	s := &Server{issuer: issuer, sessions: map[string]string{}}
	s.Server = httptest.NewServer(s)
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

// Resource is its address.
func (s *Server) Resource() string { return s.URL + "/mcp" }

// Move has another issuer protect it.
func (s *Server) Move(to *Issuer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.issuer = to
}

// Crossed reports whether a session was used by two accounts.
func (s *Server) Crossed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.crossed
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	const known = "/.well-known/oauth-protected-resource/mcp"
	if r.URL.Path == known {
		answer(w, http.StatusOK, map[string]any{"resource": s.Resource(), "authorization_servers": []string{s.issuer.URL}, "scopes_supported": []string{"notes"}})
		return
	}
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	account := s.issuer.Account(token, s.Resource())
	if account == "" {
		w.Header().Set("WWW-Authenticate", `Bearer error="invalid_token", resource_metadata="`+s.URL+known+`"`)
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	var req struct {
		ID     json.RawMessage
		Method string
		Params struct {
			Name      string
			Arguments struct{ Echo bool }
		}
	}
	if r.Method != http.MethodPost || json.NewDecoder(r.Body).Decode(&req) != nil {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	session := r.Header.Get("Mcp-Session-Id")
	s.crossed = s.crossed || session != "" && s.sessions[session] != account
	var result any
	switch req.Method {
	case "initialize":
		session = "session-" + token[len(token)-6:]
		s.sessions[session] = account
		w.Header().Set("Mcp-Session-Id", session)
		result = map[string]any{"protocolVersion": "2025-06-18", "capabilities": map[string]any{"tools": map[string]any{}}, "serverInfo": map[string]any{"name": "notes", "version": "1"}}
	case "tools/list":
		input := map[string]any{"type": "object", "properties": map[string]any{"echo": map[string]any{"type": "boolean"}}}
		result = map[string]any{"tools": []any{
			map[string]any{"name": "whoami", "description": "Tells the account.", "inputSchema": input, "annotations": map[string]any{"readOnlyHint": true}},
			map[string]any{"name": "note", "description": "Takes a note.", "inputSchema": input},
		}}
	case "tools/call":
		said := account
		if req.Params.Arguments.Echo {
			said += " by " + token
		}
		result = map[string]any{"content": []any{map[string]any{"type": "text", "text": said}}}
	default:
		w.WriteHeader(http.StatusAccepted)
		return
	}
	answer(w, http.StatusOK, map[string]any{"jsonrpc": "2.0", "id": req.ID, "result": result})
}
