// Package tracing records the durations of a turn's parts as OpenTelemetry spans. One trace is one
// turn, and its id is the trace_id of the turn's intents, which links record and trace. As long as
// nobody exports spans (see internal/telemetry), they cost next to nothing.
//
// Attributes are codes, sizes, and names of this system's own things. None is anything that
// a user, a model or a skill wrote.
package tracing

import (
	"context"
	"crypto/sha256"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// Attributes of spans and of their events. Those that begin with gen_ai, http and error are
// of OpenTelemetry's semantic conventions.
const (
	Operation    = attribute.Key("gen_ai.operation.name") // invoke_agent, chat, execute_tool
	Agent        = attribute.Key("gen_ai.agent.name")
	Model        = attribute.Key("gen_ai.request.model")
	Tool         = attribute.Key("gen_ai.tool.name")
	InputTokens  = attribute.Key("gen_ai.usage.input_tokens")
	OutputTokens = attribute.Key("gen_ai.usage.output_tokens")
	Error        = attribute.Key("error.type")
	Route        = attribute.Key("http.route")
	Status       = attribute.Key("http.response.status_code")
	Action       = attribute.Key("agent.action") // the tool that an agent calls
	Step         = attribute.Key("agent.step")   // of its plan; 0: none
	Plan         = attribute.Key("writ.plan_id")
	Intent       = attribute.Key("writ.intent_id")
	Type         = attribute.Key("writ.type")
	Code         = attribute.Key("writ.code")
	Position     = attribute.Key("writ.position") // of the intent's record
	Attempt      = attribute.Key("writ.attempt")
	Skill        = attribute.Key("writ.skill")
	Intents      = attribute.Key("writ.intent_count") // agents that a turn wanted to ask
	Cap          = attribute.Key("writ.cap")          // within, at or over its limit
	AskedAgents  = attribute.Key("writ.asked")        // the agents that were asked
	Outcomes     = attribute.Key("writ.outcomes")     // of each of them
)

// Keys are all attribute keys. The exporter drops all others.
var Keys = []attribute.Key{
	Operation, Agent, Model, Tool, InputTokens, OutputTokens, Error, Route, Status, Action, Step,
	Plan, Intent, Type, Code, Position, Attempt, Skill, Intents, Cap, AskedAgents, Outcomes,
}

// Start begins a span below that of ctx.
func Start(ctx context.Context, what string, attributes ...attribute.KeyValue) (context.Context, trace.Span) {
	return otel.Tracer("aob.dev/writ").Start(ctx, what, trace.WithAttributes(attributes...)) //nolint:spancheck // the caller ends it
}

// StartIn begins a span in the trace that a record names. It stands below the span of ctx
// only where that is of the same trace: a turn that goes on after a crash or an approval
// begins with none. An empty id changes nothing.
func StartIn(ctx context.Context, traceID, what string, attributes ...attribute.KeyValue) (context.Context, trace.Span) {
	id := idOf(traceID)
	if id.IsValid() && trace.SpanContextFromContext(ctx).TraceID() != id {
		ctx = context.WithValue(trace.ContextWithSpanContext(ctx, trace.SpanContext{}), wantedKey{}, id)
	}
	return Start(ctx, what, attributes...)
}

// idOf is the trace that a trace_id names: 32 hexadecimal digits as they are, any other
// text by the first half of its SHA-256.
func idOf(traceID string) trace.TraceID {
	if id, err := trace.TraceIDFromHex(traceID); err == nil || traceID == "" {
		return id
	}
	sum := sha256.Sum256([]byte(traceID))
	return trace.TraceID(sum[:16])
}

type wantedKey struct{}

// RequestedTraceID is the requested id of a trace that begins in ctx; not valid: any.
func RequestedTraceID(ctx context.Context) trace.TraceID {
	id, _ := ctx.Value(wantedKey{}).(trace.TraceID)
	return id
}

// In reports whether ctx is in a span.
func In(ctx context.Context) bool { return trace.SpanContextFromContext(ctx).IsValid() }

const traceparent = "traceparent"

// Parent is the span of ctx as W3C trace context has it; empty: there is none.
func Parent(ctx context.Context) string {
	c := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, c)
	return c[traceparent]
}

// Under makes a span of another process the parent. An invalid parent changes nothing.
func Under(ctx context.Context, parent string) context.Context {
	if parent == "" {
		return ctx
	}
	return propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{traceparent: parent})
}

// With has ctx go on below the span of another context.
func With(ctx, other context.Context) context.Context {
	return trace.ContextWithSpanContext(ctx, trace.SpanContextFromContext(other))
}

// IDs of the trace and the span of ctx, as hex digits; empty: there is none.
func IDs(ctx context.Context) (traceID, spanID string) {
	c := trace.SpanContextFromContext(ctx)
	if !c.IsValid() {
		return "", ""
	}
	return c.TraceID().String(), c.SpanID().String()
}

// End ends a span with a code.
func End(span trace.Span, code string) {
	span.SetAttributes(Code.String(code))
	span.End()
}
