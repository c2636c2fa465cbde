// Package crm is a customer relations system of a small trading company, as a skill
// server with more than fifty tools. Tests and evaluations ask writ about it. Its data
// are always the same, but for dates, which count from the day on which it starts.
package crm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

// Server is one such system, with data of its own.
type Server struct {
	today time.Time
	mcp   *server.MCPServer

	mu     sync.Mutex // guards the rest
	tables map[string][]row
	calls  map[string]int
	fails  map[string]int // after how many calls a tool fails; absent: never
}

// New is a system on its first day.
func New(today time.Time) *Server {
	s := &Server{
		today: today, mcp: server.NewMCPServer("crm", "1", server.WithToolCapabilities(false)),
		tables: records(today), calls: map[string]int{}, fails: map[string]int{},
	}
	for _, t := range tools {
		s.mcp.AddTool(t.declared(s.tables), s.handler(t))
	}
	return s
}

// Handler serves the tools over streamable HTTP.
func (s *Server) Handler() http.Handler {
	return server.NewStreamableHTTPServer(s.mcp, server.WithStateLess(true), server.WithDisableStreaming(true))
}

// MCP is the server of the tools.
func (s *Server) MCP() *server.MCPServer { return s.mcp }

// ServeStdio serves them over standard input and output, until the input ends.
func (s *Server) ServeStdio() error { return server.ServeStdio(s.mcp) }

// Tools are the names of all tools.
func Tools() (names []string) {
	for _, t := range tools {
		names = append(names, t.name)
	}
	return names
}

// Calls is how often a tool was called.
func (s *Server) Calls(tool string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[tool]
}

// FailAfter has a tool fail after n calls.
func (s *Server) FailAfter(tool string, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fails[tool] = n
}

// Count is how many rows of a table have a value in a column.
func (s *Server) Count(table, column string, value any) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.tables[table] {
		if r[column] == value {
			n++
		}
	}
	return n
}

func (s *Server) handler(t tool) server.ToolHandlerFunc {
	return func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		out, err := s.call(t, req.GetArguments())
		if err != nil {
			return mcp.NewToolResultError(err.Error()), nil
		}
		raw, err := json.Marshal(out)
		if err != nil {
			return nil, err
		}
		res := mcp.NewToolResultText(string(raw))
		res.RawStructuredContent = raw
		return res, nil
	}
}

// call needs mu.
func (s *Server) call(t tool, args map[string]any) (any, error) {
	s.calls[t.name]++
	if most, ok := s.fails[t.name]; ok && s.calls[t.name] > most {
		return nil, errors.New("the database takes no more changes today")
	}
	return t.do(s, args)
}

// row of a table; its first column is named as the rows are, and is its id.
type row = map[string]any

// find is the row with an id.
func (s *Server) find(table string, id any) (row, error) {
	for _, r := range s.tables[table] {
		if r[ids[table]] == id {
			return r, nil
		}
	}
	return nil, fmt.Errorf("there is no %s %v", ids[table], id)
}

// Archive adds n tools, of which each gives what one department has kept.
func (s *Server) Archive(n int) {
	for i := range n {
		name := fmt.Sprintf("archive_%d", i)
		s.mcp.AddTool(mcp.NewTool(name, mcp.WithDescription(fmt.Sprintf("Gives what department %d has kept of its records.", i)), mcp.WithReadOnlyHintAnnotation(true), mcp.WithDestructiveHintAnnotation(false)), s.handler(tool{
			name: name, do: func(*Server, map[string]any) (any, error) { return row{"department": i, "kept": "all"}, nil },
		}))
	}
}
