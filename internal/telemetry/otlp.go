package telemetry

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	bridge "go.opentelemetry.io/contrib/bridges/prometheus"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"aob.dev/writ/internal/egress"
	"aob.dev/writ/internal/tracing"
)

// OTLP configures the export of spans and metrics.
type OTLP struct {
	Endpoint string  // base URL of a collector that takes OTLP over HTTP
	Service  string  // service.name
	Sample   float64 // part of the traces that is sent, 0 to 1
}

// answerTime is how long a collector has for an answer, as OpenTelemetry has it.
const answerTime = 10 * time.Second

// Export sends spans, and figures once a minute, until stop is called, which sends the rest. It is
// for the one process that calls it. A collector that is down costs spans and a line of the log,
// and delays nothing. The variables OTEL_EXPORTER_OTLP_HEADERS, _TIMEOUT, _COMPRESSION and their
// like apply as OpenTelemetry specifies.
func Export(ctx context.Context, o OTLP, f *Figures, log *slog.Logger) (stop func(context.Context) error, err error) {
	transport := egress.Transport(o.Endpoint)
	transport.ResponseHeaderTimeout = answerTime
	if ms, err := strconv.Atoi(os.Getenv("OTEL_EXPORTER_OTLP_TIMEOUT")); err == nil && ms > 0 { // the library reads it for clients of its own alone
		transport.ResponseHeaderTimeout = time.Duration(ms) * time.Millisecond
	}
	client, base := egress.Client(door{transport}), strings.TrimRight(o.Endpoint, "/")
	spans, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(base+"/v1/traces"), otlptracehttp.WithHTTPClient(client))
	if err != nil {
		return nil, fmt.Errorf("export of traces: %w", err)
	}
	figures, err := otlpmetrichttp.New(ctx, otlpmetrichttp.WithEndpointURL(base+"/v1/metrics"), otlpmetrichttp.WithHTTPClient(client))
	if err != nil {
		return nil, fmt.Errorf("export of metrics: %w", err)
	}
	collector := egress.Server{
		Name: "OpenTelemetry collector at " + base, Unaffected: "spans of this minute are lost, and nothing else is affected",
		Address: "otlp_endpoint (--otlp-endpoint)", Secret: "OTEL_EXPORTER_OTLP_HEADERS",
	}
	who := resource.NewSchemaless(attribute.String("service.name", o.Service))
	traces := sdktrace.NewTracerProvider(sdktrace.WithResource(who), sdktrace.WithBatcher(clean{spans}), sdktrace.WithIDGenerator(ids{}),
		// By the id of the trace alone: every process samples the same ones, whatever a client
		// requests.
		sdktrace.WithSampler(sdktrace.TraceIDRatioBased(o.Sample)))
	metrics := metric.NewMeterProvider(metric.WithResource(who),
		metric.WithReader(metric.NewPeriodicReader(figures, metric.WithProducer(bridge.NewMetricProducer(bridge.WithGatherer(f.all))))))
	ctx = context.WithoutCancel(ctx)
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		log.WarnContext(ctx, "telemetry is not sent", slog.String("error", collector.Fault(err).Error()))
	}))
	otel.SetTracerProvider(traces)
	return func(ctx context.Context) error {
		if err := errors.Join(traces.Shutdown(ctx), metrics.Shutdown(ctx)); err != nil {
			return collector.Fault(err)
		}
		return nil
	}, nil
}

// door to the collector. OpenTelemetry reports its failures only as text, and retries a silent one
// for a minute; the codes for which it waits itself are left to it.
type door struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (d door) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := d.RoundTripper.RoundTrip(req)
	switch {
	case err != nil && req.Context().Err() != nil: // net/http would say for whose sake it ended
		return nil, egress.Plain(req.Context().Err())
	case err != nil:
		return nil, egress.Plain(err)
	case res.StatusCode < http.StatusMultipleChoices, slices.Contains(passing, res.StatusCode):
		return res, nil
	}
	return nil, errors.Join(egress.Status(res.StatusCode), res.Body.Close())
}

// passing are the codes after which a request is retried, as OTLP specifies.
var passing = []int{http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout}

// ids are random, but for a trace that a record has named already.
type ids struct{}

// NewIDs of a trace and its first span.
func (g ids) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	t := tracing.RequestedTraceID(ctx)
	for !t.IsValid() {
		_, _ = rand.Read(t[:]) // never fails
	}
	return t, g.NewSpanID(ctx, t)
}

// NewSpanID of a further one.
func (ids) NewSpanID(context.Context, trace.TraceID) (s trace.SpanID) {
	for !s.IsValid() {
		_, _ = rand.Read(s[:])
	}
	return s
}

// clean passes only the attributes that package tracing names, and of those no text that could be a
// sentence. Other attributes of a span are dropped.
type clean struct{ sdktrace.SpanExporter }

// ExportSpans exports the cleaned spans.
func (c clean) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	out := make([]sdktrace.ReadOnlySpan, len(spans))
	for i, s := range spans {
		out[i] = cleanSpan{s}
	}
	return c.SpanExporter.ExportSpans(ctx, out)
}

type cleanSpan struct{ sdktrace.ReadOnlySpan }

// Name is that of the span, if it could be one.
func (s cleanSpan) Name() string {
	if words := strings.Fields(s.ReadOnlySpan.Name()); len(words) > 2 || !short(s.ReadOnlySpan.Name()) {
		return "span"
	}
	return s.ReadOnlySpan.Name()
}

// Attributes returns the permitted attributes.
func (s cleanSpan) Attributes() []attribute.KeyValue {
	return cleanAttributes(s.ReadOnlySpan.Attributes())
}

// Status has no words of an error.
func (s cleanSpan) Status() sdktrace.Status {
	return sdktrace.Status{Code: s.ReadOnlySpan.Status().Code}
}

// Events returns the events with their permitted attributes.
func (s cleanSpan) Events() []sdktrace.Event {
	all := slices.Clone(s.ReadOnlySpan.Events())
	for i := range all {
		all[i].Attributes = cleanAttributes(all[i].Attributes)
	}
	return all
}

// Links are of no use here, and their attributes could be anything.
func (cleanSpan) Links() []sdktrace.Link { return nil }

func cleanAttributes(all []attribute.KeyValue) []attribute.KeyValue {
	return slices.DeleteFunc(slices.Clone(all), func(a attribute.KeyValue) bool {
		if !slices.Contains(tracing.Keys, a.Key) {
			return true
		}
		texts := []string{}
		switch a.Value.Type() { //nolint:exhaustive // numbers are no texts
		case attribute.STRING:
			texts = append(texts, a.Value.AsString())
		case attribute.STRINGSLICE:
			texts = a.Value.AsStringSlice()
		}
		return slices.ContainsFunc(texts, func(t string) bool { return !short(t) || strings.ContainsAny(t, " \t\r\n@") })
	})
}

// maxText bounds a text of a span in bytes: an intent id has 71.
const maxText = 128

func short(text string) bool { return len(text) <= maxText }
