package telemetry_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	spans "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"aob.dev/writ/internal/telemetry"
	"aob.dev/writ/internal/testing/egresstest"
	"aob.dev/writ/internal/tracing"
)

// sink takes what an exporter sends.
type sink struct {
	url string

	mu    sync.Mutex // guards the rest
	raw   bytes.Buffer
	paths map[string]int
	spans []*spans.Span
}

func collect(t *testing.T) *sink {
	t.Helper()
	s := &sink{paths: map[string]int{}}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil && r.Header.Get("Content-Encoding") == "gzip" {
			var z *gzip.Reader
			if z, err = gzip.NewReader(bytes.NewReader(body)); err == nil {
				body, err = io.ReadAll(z)
			}
		}
		if err != nil {
			t.Error(err)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.raw.Write(body)
		s.paths[r.URL.Path]++
		if r.URL.Path == "/v1/traces" {
			var got collector.ExportTraceServiceRequest
			if err := proto.Unmarshal(body, &got); err != nil {
				t.Error(err)
			}
			for _, of := range got.GetResourceSpans() {
				for _, scope := range of.GetScopeSpans() {
					s.spans = append(s.spans, scope.GetSpans()...)
				}
			}
		}
		w.WriteHeader(http.StatusOK)
	}))
	t.Cleanup(srv.Close)
	s.url = srv.URL
	return s
}

func export(t *testing.T, to *sink, sample float64) (stop func()) {
	t.Helper()
	f := telemetry.NewFigures([]telemetry.Metric{
		{Name: "writ_held", Help: "What is held.", Values: func() map[string]float64 { return telemetry.Single(3) }},
	}, telemetry.NewAsks(), telemetry.NewIntents())
	end, err := telemetry.Export(t.Context(), telemetry.OTLP{Endpoint: to.url, Service: "gate", Sample: sample}, f, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := end(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}
}

// TestExportHasNoContent: what a part of the program writes into a span beside names,
// codes and sizes does not leave the process.
func TestExportHasNoContent(t *testing.T) {
	const secret = "the moon is made of cheese"
	to := collect(t)
	stop := export(t, to, 1)
	ctx, span := tracing.Start(t.Context(), "intent memory.write", tracing.Type.String("memory.write"), tracing.Step.Int(2), attribute.String("note", "cheese"), tracing.Agent.String(secret), tracing.Plan.String("ana@example.com"))
	span.AddEvent("agent.routing", trace.WithAttributes(tracing.Intents.Int(2), tracing.AskedAgents.StringSlice([]string{"orders", secret}), attribute.String("q", "cheese")))
	span.SetStatus(codes.Error, secret)
	_, other := tracing.Start(ctx, secret)
	other.End()
	span.End()
	stop()

	to.mu.Lock()
	defer to.mu.Unlock()
	if to.paths["/v1/traces"] == 0 || to.paths["/v1/metrics"] == 0 {
		t.Fatalf("%v", to.paths)
	}
	for _, no := range []string{"cheese", "ana@"} {
		if bytes.Contains(to.raw.Bytes(), []byte(no)) {
			t.Errorf("%q was sent", no)
		}
	}
	for _, yes := range []string{"writ_held", "gate"} {
		if !bytes.Contains(to.raw.Bytes(), []byte(yes)) {
			t.Errorf("%q was not sent", yes)
		}
	}
	var names []string
	for _, s := range to.spans {
		names = append(names, s.GetName())
		for _, a := range s.GetAttributes() {
			names = append(names, a.GetKey())
		}
	}
	want := []string{"span", "intent memory.write", "writ.type", "agent.step"}
	if d := cmp.Diff(want, names); d != "" {
		t.Error(d)
	}
}

// TestExportFaults: a collector that fails is told of in words, with the setting that helps.
func TestExportFaults(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "500") // milliseconds
	for name, b := range egresstest.Servers(t) {
		t.Run(name, func(t *testing.T) {
			f := telemetry.NewFigures(nil, telemetry.NewAsks(), telemetry.NewIntents())
			stop, err := telemetry.Export(t.Context(), telemetry.OTLP{Endpoint: b.URL, Service: "gate", Sample: 1}, f, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			_, span := tracing.Start(t.Context(), "turn")
			span.End()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			b.Check(t, stop(ctx), "spans of this minute are lost, and nothing else is affected")
		})
	}
}

// TestSample: a part of the traces is sent, and of these all.
func TestSample(t *testing.T) {
	to := collect(t)
	stop := export(t, to, 0.5)
	const traces = 400
	for range traces {
		ctx, span := tracing.Start(t.Context(), "turn")
		parent := tracing.Parent(ctx)
		if id, _ := tracing.IDs(ctx); !strings.Contains(parent, id) || id == "" {
			t.Fatalf("%q of trace %q", parent, id)
		}
		// As another process does, which a client may have told anything.
		_, below := tracing.Start(tracing.Under(context.Background(), parent[:len(parent)-2]+"01"), "router")
		below.End()
		span.End()
	}
	stop()
	of := map[string]int{}
	for _, s := range to.spans {
		of[string(s.GetTraceId())]++
	}
	if len(of) < traces/4 || len(of) > traces*3/4 {
		t.Errorf("%d of %d traces", len(of), traces)
	}
	for id, n := range of {
		if n != 2 {
			t.Errorf("trace %x has %d spans", id, n)
		}
	}
}

// TestIntents: decisions are counted by type and code, and by rule; stages and commits are timed.
func TestIntents(t *testing.T) {
	o := telemetry.NewIntents()
	h := telemetry.Handler(telemetry.NewFigures(nil, telemetry.NewAsks(), o))
	o.Decided("skill.call", "POLICY_DENIED", []string{"no_deletes"})
	o.Decided("", "SIGNATURE_INVALID", nil)
	o.Stage("policy", 1000)
	o.Committed(3, 1000)
	_, text := get(t, h, "/metrics")
	for _, line := range []string{
		`writ_intents_decided_total{code="POLICY_DENIED",type="skill.call"} 1`, `writ_intents_decided_total{code="SIGNATURE_INVALID",type="unknown"} 1`,
		`writ_policy_denials_total{policy="no_deletes"} 1`, `writ_stage_seconds_count{stage="policy"} 1`, `writ_journal_commit_intents_sum 3`, `writ_journal_commit_seconds_count 1`,
	} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("no line %s", line)
		}
	}
}
