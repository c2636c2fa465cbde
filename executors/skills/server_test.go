package skills_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	wire "github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"aob.dev/writ/executors/mcp"
	"aob.dev/writ/executors/skills"
	"aob.dev/writ/intents"
	"aob.dev/writ/internal/demo/quakes"
	"aob.dev/writ/internal/testing/executortest"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/blobdir"
)

// site is a real MCP server that can go down and come back, and that counts
// the calls of its tools.
type site struct {
	srv   *httptest.Server
	mu    sync.Mutex // guards next
	next  http.Handler
	calls atomic.Int64
	keys  sync.Map // Idempotency-Key headers seen
}

var down = http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })

func newSite(t *testing.T, h http.Handler) *site {
	t.Helper()
	s := &site{next: h}
	s.srv = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if key := r.Header.Get("Idempotency-Key"); key != "" {
			s.calls.Add(1)
			s.keys.Store(key, true)
		}
		s.mu.Lock()
		next := s.next
		s.mu.Unlock()
		next.ServeHTTP(w, r)
	}))
	t.Cleanup(s.srv.Close)
	return s
}

func (s *site) become(h http.Handler) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next = h
}

func (s *site) open(ctx context.Context) (skills.Server, error) {
	src, err := mcp.ParseSource(s.srv.URL + quakes.Path)
	if err != nil {
		return nil, err
	}
	c, err := mcp.Dial(ctx, src, mcp.Options{Backoff: -1, Timeout: 5 * time.Second})
	if err != nil {
		return nil, err
	}
	return c, nil
}

// tool of a server under test.
type tool struct {
	name, description, input, output string
	handle                           server.ToolHandlerFunc
}

func serverOf(tools ...tool) http.Handler {
	s := server.NewMCPServer("test", "1", server.WithToolCapabilities(false))
	for _, t := range tools {
		if t.input == "" {
			t.input = `{"type":"object"}`
		}
		w := wire.NewToolWithRawSchema(t.name, t.description, json.RawMessage(t.input))
		w.Annotations = wire.ToolAnnotation{}
		if t.output != "" {
			w.RawOutputSchema = json.RawMessage(t.output)
		}
		s.AddTool(w, t.handle)
	}
	mux := http.NewServeMux()
	mux.Handle(quakes.Path, server.NewStreamableHTTPServer(s, server.WithStateLess(true), server.WithDisableStreaming(true)))
	return mux
}

func answer(structured, text string) server.ToolHandlerFunc {
	return func(context.Context, wire.CallToolRequest) (*wire.CallToolResult, error) {
		r := wire.NewToolResultText(text)
		if structured != "" {
			r.RawStructuredContent = json.RawMessage(structured)
		}
		return r, nil
	}
}

// bench is the executor on real servers and blobs.
type bench struct {
	*executortest.Executor
	registry *skills.Registry
	cache    *skills.Cache
	blobs    storage.Blobs
	clock    atomic.Int64 // seconds added to the time
}

func (b *bench) now() time.Time { return time.Now().Add(time.Duration(b.clock.Load()) * time.Second) }

func open(t *testing.T, sites map[string]*site) *bench {
	t.Helper()
	b := &bench{}
	blobs, err := blobdir.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	b.blobs = blobs
	b.registry = skills.NewRegistry(t.Context(), b.now)
	t.Cleanup(func() {
		if err := b.registry.Close(); err != nil {
			t.Error(err)
		}
	})
	for name, s := range sites {
		if err := b.registry.Add(name, skills.Terms{}, s.open); err != nil {
			t.Fatal(err)
		}
	}
	b.cache = skills.NewCache(b.now)
	b.Executor = executortest.New(t, skills.Name, b.now, skills.Handlers(skills.Config{Registry: b.registry, Blobs: blobs, Cache: b.cache, Now: b.now}))
	return b
}

// pins approves everything that the servers declare now.
func (b *bench) pins(t *testing.T, effect string) []intents.Pin {
	t.Helper()
	all, err := b.registry.Skills(t.Context(), intents.Principal{})
	if err != nil {
		t.Fatal(err)
	}
	var pins []intents.Pin
	for _, s := range all {
		pins = append(pins, intents.Pin{Skill: s.Name, Digest: s.Digest(), Effect: effect})
	}
	return pins
}

// call is an intent of a task that may call the skill, under its pin.
func call(pins []intents.Pin, skill string, input any) executortest.Intent {
	args := map[string]any{"skill": skill}
	if input != nil {
		args["input"] = input
	}
	in := executortest.Intent{Type: "skill.call", Args: args}
	in.Ticket.Scope = &intents.TaskScopeClaim{Skills: []string{skill}}
	for _, p := range pins {
		if p.Skill == skill {
			in.Ticket.Pins = []intents.Pin{p}
		}
	}
	return in
}
