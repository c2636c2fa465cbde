package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/rogpeppe/go-internal/testscript"

	"aob.dev/writ/internal/demo/quakes"
)

const (
	citySchema = `{"type":"object","properties":{"cities":{"type":"array","items":{"type":"object","properties":` +
		`{"city":{"type":"string"},"inhabitants":{"type":"integer"}},"required":["city","inhabitants"]}}},"required":["cities"]}`
	noSchema = `{"type":"object","properties":{"cities":{"type":"no such type"}}}`
	cities   = `{"cities":[{"city":"Oslo","inhabitants":709037},{"city":"Bergen","inhabitants":291940}]}`
	lie      = `{"cities":[{"city":"Oslo","inhabitants":"very many"}]}`
)

// serveSkills serves one of:
//
//	quakes  the demo's
//	cities  a skill that lists cities
//	many    the same, which lists more than fits into an answer
//	liar    the same, whose output is not what its schema says
//	changed the same as cities, with another schema
//	broken  the same, whose schema is none
//	down    nobody: the address of a server that is gone
func serveSkills(ts *testscript.TestScript, w *world, args []string) {
	want(ts, args, 1, "skills KIND")
	var h http.Handler
	switch args[0] {
	case "quakes":
		h = must[http.Handler](ts)(quakes.Handler())
	case "cities", "down":
		h = cityServer(citySchema, cities)
	case "many":
		h = cityServer(citySchema, manyCities())
	case "liar":
		h = cityServer(citySchema, lie)
	case "changed":
		h = cityServer(`{"type":"object"}`, cities)
	case "broken":
		h = cityServer(noSchema, cities)
	default:
		ts.Fatalf("no skill server of kind %s", args[0])
	}
	var n atomic.Int64
	w.calls = n.Load
	srv := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Idempotency-Key") != "" {
			n.Add(1)
		}
		h.ServeHTTP(rw, r)
	}))
	stop := func() {
		srv.CloseClientConnections()
		srv.Close()
	}
	ts.Setenv("SKILLS", srv.URL+quakes.Path)
	if args[0] == "down" {
		stop()
		return
	}
	ts.Defer(stop)
}

// manyCities are about 100 kB.
func manyCities() string {
	var b strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&b, `,{"city":"City number %d","inhabitants":%d}`, i, 10_000+i)
	}
	return `{"cities":[` + b.String()[1:] + `]}`
}

// calls checks how often a skill was called.
func calls(ts *testscript.TestScript, w *world, args []string) {
	want(ts, args, 1, "calls N")
	if n := must[int](ts)(strconv.Atoi(args[0])); w.calls == nil || w.calls() != int64(n) {
		ts.Fatalf("the skill server was called %d times, not %d", w.calls(), n)
	}
}

func cityServer(output, result string) http.Handler {
	s := server.NewMCPServer("cities", "1", server.WithToolCapabilities(false))
	tool := mcp.NewToolWithRawSchema("city_list", "Lists the cities with their inhabitants.", json.RawMessage(`{"type":"object","properties":{}}`))
	tool.RawOutputSchema = json.RawMessage(output)
	yes := true
	tool.Annotations = mcp.ToolAnnotation{ReadOnlyHint: &yes}
	s.AddTool(tool, func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		r := mcp.NewToolResultText(result)
		r.RawStructuredContent = json.RawMessage(result)
		return r, nil
	})
	mux := http.NewServeMux()
	mux.Handle(quakes.Path, server.NewStreamableHTTPServer(s, server.WithStateLess(true), server.WithDisableStreaming(true)))
	return mux
}
