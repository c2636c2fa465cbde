package e2e

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"aob.dev/writ/intents/catalog"
)

// gate blocks the first caller, until it is opened.
type gate struct {
	once          sync.Once
	reached, open chan struct{}
}

func newGate() *gate { return &gate{reached: make(chan struct{}), open: make(chan struct{})} }

// pass waits at the gate if it is the first to come.
func (g *gate) pass(ctx context.Context) {
	g.once.Do(func() {
		close(g.reached)
		select {
		case <-g.open:
		case <-ctx.Done():
		}
	})
}

// wait returns when somebody stands at the gate.
func (g *gate) wait(t *testing.T) {
	t.Helper()
	select {
	case <-g.reached:
	case <-time.After(patience):
		t.Fatal("nobody came to the gate")
	}
}

// depot is a skill server outside the machine: what was called there has
// happened, whoever dies. It knows every call by the intent_id that came along.
type depot struct {
	t      *testing.T
	skills string             // as --skills takes it
	gates  map[string]*gate   // by skill
	watch  func(skill string) // if not nil, called for every call

	mu      sync.Mutex // guards the rest
	calls   map[string][]string
	parcels map[string]map[int]int // by skill: how often it was called for a parcel
}

// The depot's skills. Each declares its effect by MCP hints; parcel_send declares none, so it acts
// once.
var depotSkills = []struct {
	name, about, output, result string
	effect                      catalog.Effect
}{
	{
		"parcel_list", "Lists the parcels with their weights.", `{"type":"object","properties":{"parcels":{"type":"array","items":{"type":"object",` +
			`"properties":{"parcel":{"type":"string"},"weight":{"type":"integer"}},"required":["parcel","weight"]}}},"required":["parcels"]}`,
		`{"parcels":[{"parcel":"p-1","weight":3},{"parcel":"p-2","weight":4}]}`, catalog.Pure,
	},
	{"parcel_weigh", "Weighs parcels.", `{"type":"object","properties":{"total":{"type":"integer"}},"required":["total"]}`, `{"total":7}`, catalog.Pure},
	{"parcel_label", "Labels parcels; a label that is there stays.", `{"type":"object","properties":{"total":{"type":"integer"}},"required":["total"]}`, `{"total":7}`, catalog.Idempotent},
	{"parcel_send", "Sends parcels away.", `{"type":"object","properties":{"total":{"type":"integer"}},"required":["total"]}`, `{"total":7}`, catalog.Once},
	{"parcel_state", "Says how many parcels are on their way.", `{"type":"object","properties":{"total":{"type":"integer"}},"required":["total"]}`, `{"total":2}`, catalog.Pure},
}

func serveDepot(t *testing.T, gates map[string]*gate) *depot {
	t.Helper()
	d := &depot{t: t, gates: gates, calls: map[string][]string{}, parcels: map[string]map[int]int{}}
	m := server.NewMCPServer("depot", "1", server.WithToolCapabilities(false))
	yes := true
	for _, s := range depotSkills {
		tool := mcp.NewToolWithRawSchema(s.name, s.about, json.RawMessage(`{"type":"object"}`))
		tool.RawOutputSchema = json.RawMessage(s.output)
		tool.Annotations = mcp.ToolAnnotation{}
		switch s.effect {
		case catalog.Pure:
			tool.Annotations.ReadOnlyHint = &yes
		case catalog.Idempotent:
			tool.Annotations.IdempotentHint, tool.Annotations.DestructiveHint = &yes, new(bool)
		default:
		}
		m.AddTool(tool, func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			d.called(req)
			if d.watch != nil {
				d.watch(s.name)
			}
			if g := d.gates[s.name]; g != nil {
				g.pass(ctx)
			}
			r := mcp.NewToolResultText(s.result)
			r.RawStructuredContent = json.RawMessage(s.result)
			return r, nil
		})
	}
	srv := httptest.NewServer(server.NewStreamableHTTPServer(m, server.WithStateLess(true), server.WithDisableStreaming(true)))
	t.Cleanup(func() {
		srv.CloseClientConnections()
		srv.Close()
	})
	// Whoever has a depot approves what it does.
	d.skills = "trust=true effect=parcel_label:idempotent effect=parcel_send:once -- " + srv.URL + "/mcp"
	return d
}

// called notes a call by its intent_id, which comes as a header and in _meta.
func (d *depot) called(req mcp.CallToolRequest) {
	id := req.Header.Get("Idempotency-Key")
	var meta any
	if m := req.Params.Meta; m != nil {
		meta = m.AdditionalFields["aob.dev/intent_id"]
	}
	if id == "" || meta != id {
		d.t.Errorf("%s was called with key %q and intent_id %v", req.Params.Name, id, meta)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls[req.Params.Name] = append(d.calls[req.Params.Name], id)
	if n := req.GetInt("parcel", 0); n != 0 {
		if d.parcels[req.Params.Name] == nil {
			d.parcels[req.Params.Name] = map[int]int{}
		}
		d.parcels[req.Params.Name][n]++
	}
}

// times is how often a skill was called for a parcel.
func (d *depot) times(skill string, parcel int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.parcels[skill][parcel]
}

// ids are the intent_ids under which a skill was called, in order.
func (d *depot) ids(skill string) []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]string{}, d.calls[skill]...)
}
