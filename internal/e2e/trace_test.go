package e2e

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/hex"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	metrics "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"aob.dev/writ/internal/telemetry"
)

// collected is a collector of OpenTelemetry, made of the protocol's own messages.
type collected struct {
	url string

	mu      sync.Mutex // guards the rest
	raw     []byte
	spans   []*otlp.Span
	figures map[string]bool // by name
}

// got is what it has got.
func (c *collected) got() (spans []*otlp.Span, raw []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.spans), slices.Clone(c.raw)
}

func serveCollector(t *testing.T) *collected {
	t.Helper()
	c := &collected{figures: map[string]bool{}}
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil && r.Header.Get("Content-Encoding") == "gzip" {
			var z *gzip.Reader
			if z, err = gzip.NewReader(bytes.NewReader(body)); err == nil {
				body, err = io.ReadAll(z)
			}
		}
		var got collector.ExportTraceServiceRequest
		var figures metrics.ExportMetricsServiceRequest
		switch {
		case err != nil:
		case r.URL.Path == "/v1/traces":
			err = proto.Unmarshal(body, &got)
		default:
			err = proto.Unmarshal(body, &figures)
		}
		if err != nil {
			t.Error(err)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.raw = append(c.raw, body...)
		for _, of := range got.GetResourceSpans() {
			for _, scope := range of.GetScopeSpans() {
				c.spans = append(c.spans, scope.GetSpans()...)
			}
		}
		for _, of := range figures.GetResourceMetrics() {
			for _, scope := range of.GetScopeMetrics() {
				for _, m := range scope.GetMetrics() {
					c.figures[m.GetName()] = true
				}
			}
		}
	}))
	t.Cleanup(srv.Close)
	c.url = srv.URL
	return c
}

// TestTraceOfATurn: a collector gets one trace of a turn, which has the id that its intents
// have. Each span but the first has its parent there, across the bus: from the request over
// the manager, the agents' models and tools, the intents, the router and the executors to the
// skills. It gets the figures, too. Nothing that was sent has a word of the request or of the
// answer.
func TestTraceOfATurn(t *testing.T) {
	c := serveCollector(t)
	traceOfATurn(t, c, c.url)
}

// traceOfATurn exports to an address, and arrives at a collector.
func traceOfATurn(t *testing.T, c *collected, endpoint string) {
	t.Helper()
	s := start(t, setup{Skills: []string{serveShop(t).url}})
	flush, err := telemetry.Export(t.Context(), telemetry.OTLP{Endpoint: endpoint, Service: "test", Sample: 1}, s.node.Figures(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	got := s.ask(s.as("ana.maria"), "How many orders are not paid?")
	if got.Status != "complete" {
		t.Fatalf("%s: %s", got.Status, got.Reason)
	}
	if err := flush(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}

	spans, raw := c.got()
	id, ids, names, roots := got.Intents[0].TraceID, map[string]string{}, []string{}, []string{}
	for _, x := range spans {
		if hex.EncodeToString(x.GetTraceId()) == id {
			ids[string(x.GetSpanId())] = x.GetName()
		}
	}
	events := 0
	for _, x := range spans {
		if ids[string(x.GetSpanId())] == "" {
			continue // of another test, or of a request that is no turn
		}
		names = append(names, x.GetName())
		if _, ok := ids[string(x.GetParentSpanId())]; !ok {
			roots = append(roots, x.GetName())
		}
		for _, e := range x.GetEvents() {
			if e.GetName() == "agent.routing" {
				events++
			}
		}
	}
	if !slices.Equal(roots, []string{"POST /agent/run"}) {
		t.Errorf("spans without a parent: %v", roots)
	}
	if events != 1 {
		t.Errorf("%d routing events, want one", events)
	}
	c.mu.Lock()
	if !c.figures["writ_intents_accepted_total"] || !c.figures["writ_stage_seconds"] {
		t.Errorf("figures: %v", c.figures)
	}
	c.mu.Unlock()
	for _, part := range []string{"turn", "invoke_agent planner", "chat ", "execute_tool ", "intent plan.claim", "intent skill.call", "router", "dispatch skill.call", "execute skill.call", "tools/call "} {
		if !slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(n, part) }) {
			t.Errorf("no span %s in %v", part, names)
		}
	}
	for _, o := range got.Intents {
		if o.TraceID != id {
			t.Errorf("intent %s is of trace %s, not %s", o.Type, o.TraceID, id)
		}
	}
	for _, no := range []string{"How many", "not paid", "ana.maria", got.Response} {
		if bytes.Contains(raw, []byte(no)) {
			t.Errorf("%q was sent", no)
		}
	}
	var page struct {
		Rows []struct {
			Trace string `json:"trace_id"`
			Span  string `json:"span_id"`
		} `json:"rows"`
	}
	s.call(s.as("ana.maria"), http.MethodPost, "/query/", map[string]string{"mode": "SQL", "query": "SELECT trace_id, span_id FROM messages WHERE message_type = 'assistant'"}, &page)
	if len(page.Rows) != 1 {
		t.Fatalf("%d messages of the assistant", len(page.Rows))
	}
	m := page.Rows[0]
	if span, err := hex.DecodeString(m.Span); err != nil || m.Trace != id || ids[string(span)] == "" {
		t.Errorf("message of trace %q and span %q, which no collector has", m.Trace, m.Span)
	}
}

// TestTraceGoesOn: a turn that waited for people, and is then handed out again by nobody's request,
// is in the trace that its intents name. So is the call that they have approved, and not in the
// trace of who approved it.
func TestTraceGoesOn(t *testing.T) {
	c := serveCollector(t)
	s := start(t, setup{Skills: []string{serveShop(t).url}})
	ben, _, _ := s.holds("order_list")
	flush, err := telemetry.Export(t.Context(), telemetry.OTLP{Endpoint: c.url, Service: "test", Sample: 1}, s.node.Figures(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ana := s.as("ana")
	held := s.hold(ana, "How many orders are not paid?")
	if _, p := s.decide(ben, held.Approval.IntentID, "approve", ""); p.Code != "" {
		t.Fatalf("%+v", p)
	}
	_, from := s.streamEnd(ana, held.PlanID, "")
	for end := ""; end != "done"; {
		end, from = s.streamEnd(ana, held.PlanID, from)
	}
	if err := flush(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
	signed, turns, carried := s.intents(held.PlanID), 0, 0
	spans, _ := c.got()
	for _, x := range spans {
		switch x.GetName() {
		case "turn":
			turns++
		case "dispatch skill.call", "execute skill.call":
			carried++
		case "router":
			ours := false
			for _, a := range x.GetAttributes() {
				ours = ours || slices.ContainsFunc(signed, func(o intent) bool { return o.Decision.IntentID == a.GetValue().GetStringValue() })
			}
			if !ours {
				continue
			}
		default:
			continue
		}
		if id := hex.EncodeToString(x.GetTraceId()); id != signed[0].TraceID {
			t.Errorf("%s is in trace %s, the intents in %s", x.GetName(), id, signed[0].TraceID)
		}
	}
	if turns != 2 || carried != 2 {
		t.Errorf("%d spans of the turn and %d of the call", turns, carried)
	}
}
