package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
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
//	broken  the same as cities, whose schema is none
//	guarded the same as cities, for requests with the header that docs/skills.md shows
//	stuck   the same as cities, whose first call is never answered
//	down    nobody: the address of a server that is gone
func serveSkills(ts *testscript.TestScript, w *world, args []string) {
	want(ts, args, 1, "skills KIND")
	var h http.Handler
	switch args[0] {
	case "quakes":
		h = must[http.Handler](ts)(quakes.Handler())
	case "cities", "down", "stuck":
		h = cityServer(citySchema, cities)
	case "many":
		h = cityServer(citySchema, manyCities())
	case "liar":
		h = cityServer(citySchema, lie)
	case "changed":
		h = cityServer(`{"type":"object"}`, cities)
	case "broken":
		h = cityServer(noSchema, cities)
	case "guarded":
		h = guarded(cityServer(citySchema, cities), "Bearer "+ts.Getenv("CRM_TOKEN"))
	default:
		ts.Fatalf("no skill server of kind %s", args[0])
	}
	var n atomic.Int64
	first := make(chan struct{})
	w.calls, w.called = n.Load, first
	srv := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Idempotency-Key") != "" && n.Add(1) == 1 {
			close(first)
			if args[0] == "stuck" {
				_, _ = new(bytes.Buffer).ReadFrom(r.Body) // else nobody sees that the caller goes away
				<-r.Context().Done()
				return
			}
		}
		h.ServeHTTP(rw, r)
	}))
	stop := func() {
		srv.CloseClientConnections()
		srv.Close()
	}
	ts.Setenv("SKILL_URL", srv.URL+quakes.Path)
	ts.Setenv("SKILLS", "trust=true -- "+srv.URL+quakes.Path) // whose word counts: tests of skills that nobody has approved say otherwise
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

// guarded answers requests with these credentials, and repeats others as servers do.
func guarded(h http.Handler, credentials string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if got := r.Header.Get("Authorization"); got != credentials {
			http.Error(w, "these are not my credentials: "+got, http.StatusForbidden)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// notesServer is a skill server over its standard streams: notes-server --dir DIR lists
// the notes of a directory, and needs NOTES_TOKEN. It tells its log what it should not.
func notesServer() {
	token := os.Getenv("NOTES_TOKEN")
	fmt.Fprintln(os.Stderr, "started with", token, "at level", os.Getenv("LEVEL"))
	if len(os.Args) != 3 || token == "" {
		os.Exit(2)
	}
	s := server.NewMCPServer("notes", "1", server.WithToolCapabilities(false))
	yes := true
	for name, about := range map[string]string{"note_list": "Lists the notes with their text.", "note_add": "Adds a note."} {
		tool := mcp.NewToolWithRawSchema(name, about, json.RawMessage(`{"type":"object","properties":{}}`))
		tool.RawOutputSchema = json.RawMessage(`{"type":"object","properties":{"notes":{"type":"array","items":{"type":"object","properties":{"note":{"type":"string"}},"required":["note"]}}},"required":["notes"]}`)
		tool.Annotations = mcp.ToolAnnotation{ReadOnlyHint: &yes} // which is not true of note_add
		s.AddTool(tool, func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			raw, err := notes(os.Args[2])
			if err != nil {
				return nil, fmt.Errorf("with %s: %w", token, err)
			}
			r := mcp.NewToolResultText(string(raw))
			r.RawStructuredContent = raw
			return r, nil
		})
	}
	if err := server.ServeStdio(s); err != nil {
		os.Exit(1)
	}
}

func notes(dir string) (json.RawMessage, error) {
	list, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	type note struct {
		Note string `json:"note"`
	}
	all := []note{}
	for _, e := range list {
		raw, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		all = append(all, note{strings.TrimSpace(string(raw))})
	}
	return json.Marshal(map[string]any{"notes": all})
}

// configured writes the YAML of a page that holds a text to writ.yaml, with the paths and
// addresses of this test: configured PAGE TEXT [OLD NEW]….
func configured(ts *testscript.TestScript, _ *world, args []string) {
	want(ts, args, 2, "configured PAGE TEXT [OLD NEW]…")
	page := string(must[[]byte](ts)(os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(args[0])))))
	for i, block := range strings.Split(page, "\n```") {
		lang, lines, _ := strings.Cut(block, "\n")
		if i%2 == 1 && lang == "yaml" && strings.Contains(lines, args[1]) {
			ts.Check(os.WriteFile(ts.MkAbs("writ.yaml"), []byte(strings.NewReplacer(args[2:]...).Replace(lines)), 0o600))
			return
		}
	}
	ts.Fatalf("%s shows no YAML with %q", args[0], args[1])
}

// checkAbsent checks that no file of $WORK/data holds a text: unseen TEXT.
func checkAbsent(ts *testscript.TestScript, w *world, args []string) {
	want(ts, args, 1, "unseen TEXT")
	files := 0
	ts.Check(filepath.WalkDir(w.data, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		files++
		raw, err := os.ReadFile(path)
		if bytes.Contains(raw, []byte(args[0])) {
			ts.Fatalf("%s holds it", path)
		}
		return err
	}))
	if files < 5 {
		ts.Fatalf("there are only %d files", files)
	}
}
