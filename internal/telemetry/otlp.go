package telemetry

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

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

// OTLP says where spans and figures are sent to.
type OTLP struct {
	Endpoint string  // base URL of a collector that takes OTLP over HTTP
	Service  string  // service.name
	Sample   float64 // part of the traces that is sent, 0 to 1
}

// Export sends spans, and figures once a minute, until stop is called, which sends
// what is left. It is for the one process that calls it. A collector that is down costs spans
// and a line of the log, and holds nothing up. The variables OTEL_EXPORTER_OTLP_HEADERS,
// _TIMEOUT, _COMPRESSION and their like count as OpenTelemetry says.
func Export(ctx context.Context, o OTLP, f *Figures, log *slog.Logger) (stop func(context.Context) error, err error) {
	client, base := egress.Client(egress.Transport(o.Endpoint)), strings.TrimRight(o.Endpoint, "/")
	spans, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(base+"/v1/traces"), otlptracehttp.WithHTTPClient(client))
	if err != nil {
		return nil, fmt.Errorf("export of traces: %w", err)
	}
	figures, err := otlpmetrichttp.New(ctx, otlpmetrichttp.WithEndpointURL(base+"/v1/metrics"), otlpmetrichttp.WithHTTPClient(client))
	if err != nil {
		return nil, fmt.Errorf("export of metrics: %w", err)
	}
	who := resource.NewSchemaless(attribute.String("service.name", o.Service))
	traces := sdktrace.NewTracerProvider(sdktrace.WithResource(who), sdktrace.WithBatcher(clean{spans}), sdktrace.WithIDGenerator(ids{}),
		// By the id of the trace alone: every process keeps the same ones, whatever a client says.
		sdktrace.WithSampler(sdktrace.TraceIDRatioBased(o.Sample)))
	metrics := metric.NewMeterProvider(metric.WithResource(who),
		metric.WithReader(metric.NewPeriodicReader(figures, metric.WithProducer(bridge.NewMetricProducer(bridge.WithGatherer(f.all))))))
	ctx = context.WithoutCancel(ctx)
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		log.WarnContext(ctx, "telemetry is not sent; nothing else is affected", slog.String("error", err.Error()))
	}))
	otel.SetTracerProvider(traces)
	return func(ctx context.Context) error { return errors.Join(traces.Shutdown(ctx), metrics.Shutdown(ctx)) }, nil
}

// ids are random, but for a trace that a record has named already.
type ids struct{}

// NewIDs of a trace and its first span.
func (g ids) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	t := tracing.Wanted(ctx)
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

// clean lets through what tracing names, and of that no text that could be somebody's
// sentence. A part of this program that writes more into a span tells nobody.
type clean struct{ sdktrace.SpanExporter }

// ExportSpans sends what is left of the spans.
func (c clean) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	out := make([]sdktrace.ReadOnlySpan, len(spans))
	for i, s := range spans {
		out[i] = cleaned{s}
	}
	return c.SpanExporter.ExportSpans(ctx, out)
}

type cleaned struct{ sdktrace.ReadOnlySpan }

// Name is that of the span, if it could be one.
func (s cleaned) Name() string {
	if words := strings.Fields(s.ReadOnlySpan.Name()); len(words) > 2 || !short(s.ReadOnlySpan.Name()) {
		return "span"
	}
	return s.ReadOnlySpan.Name()
}

// Attributes that may be told.
func (s cleaned) Attributes() []attribute.KeyValue { return told(s.ReadOnlySpan.Attributes()) }

// Status has no words of an error.
func (s cleaned) Status() sdktrace.Status {
	return sdktrace.Status{Code: s.ReadOnlySpan.Status().Code}
}

// Events with the attributes that may be told.
func (s cleaned) Events() []sdktrace.Event {
	all := slices.Clone(s.ReadOnlySpan.Events())
	for i := range all {
		all[i].Attributes = told(all[i].Attributes)
	}
	return all
}

// Links are of no use here, and their attributes could be anything.
func (cleaned) Links() []sdktrace.Link { return nil }

func told(all []attribute.KeyValue) []attribute.KeyValue {
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
