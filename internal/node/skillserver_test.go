package node

import (
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// tool is one tool of a skill server.
type tool struct {
	Name, Description string
	ReadOnly          bool
	Idempotent        bool
	Destructive       bool
}

// skillServer is the part of MCP over streamable HTTP that listing needs.
type skillServer struct {
	t    *testing.T
	addr string

	mu     sync.Mutex // guards tools and listed
	tools  []tool
	listed int // how often the tools were asked for
	http   *httptest.Server
}

// newSkillServer starts a server that ends with the test.
func newSkillServer(t *testing.T, tools ...tool) *skillServer {
	t.Helper()
	s := &skillServer{t: t, tools: tools}
	s.start("127.0.0.1:0")
	t.Cleanup(s.stop)
	return s
}

func (s *skillServer) url() string { return "http://" + s.addr + "/mcp" }

// set replaces the tools.
func (s *skillServer) set(tools ...tool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tools = tools
}

func (s *skillServer) start(addr string) {
	s.t.Helper()
	l, err := new(net.ListenConfig).Listen(s.t.Context(), "tcp", addr)
	if err != nil {
		s.t.Fatal(err)
	}
	s.addr = l.Addr().String()
	s.http = &httptest.Server{Listener: l, Config: &http.Server{Handler: s}}
	s.http.Start()
}

// stop takes it down; start at the same address brings it back.
func (s *skillServer) stop() {
	if s.http != nil {
		s.http.CloseClientConnections()
		s.http.Close()
		s.http = nil
	}
}

func (s *skillServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
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

func (s *skillServer) list() []map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listed++
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
