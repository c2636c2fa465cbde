package catalog

import (
	"encoding/json"
	"time"
)

// What people read is no intent: these are the parameters and answers of such reads.

// Capabilities that a read needs.
const (
	CapabilityPlans     = "plans:read"
	CapabilitySessions  = "sessions:read"
	CapabilityKnowledge = "kb:read"
	CapabilityCache     = "cache:read"
	CapabilitySchedules = "schedules:read"
)

// Period bounds when something was created, in RFC 3339. Empty: no bound.
type Period struct {
	Since string `json:"since,omitempty"` // at or after
	Until string `json:"until,omitempty"` // before
}

// PlanUsage selects the plans of a report: the user's, or the tenant's.
type PlanUsage struct {
	Period
	ByDay       bool `json:"by_day,omitempty"`
	WholeTenant bool `json:"whole_tenant,omitempty"`
}

// PlanUsageResult says what plans used, and how they went.
type PlanUsageResult struct {
	Usage  []UsageRow    `json:"usage"`  // the newest day first, then the most input
	Plans  []PlansHealth `json:"plans"`  // most replans first
	Skills []SkillHealth `json:"skills"` // most failures first
}

// UsageRow is what an agent used of a model. A turn is a plan in which it used the model.
type UsageRow struct {
	Day          string   `json:"day,omitempty"` // of the plan's creation, in UTC
	Agent        string   `json:"agent_name"`
	Model        string   `json:"model"`
	Turns        int64    `json:"turns"`
	InputTokens  int64    `json:"input_tokens"`
	CachedTokens int64    `json:"cached_tokens,omitempty"` // of the input tokens
	OutputTokens int64    `json:"output_tokens"`
	Estimated    bool     `json:"estimated,omitempty"` // a server did not report all tokens
	AvgLatencyMS int64    `json:"avg_latency_ms"`      // of all calls of a turn together
	Cost         *float64 `json:"cost,omitempty"`      // absent: the model has no price
}

// Price of a model for a million tokens, in any currency.
type Price struct{ Input, Cached, Output float64 }

// Of is the price of tokens. The cached ones are among the input.
func (p Price) Of(input, cached, output int64) float64 {
	return (p.Input*float64(max(0, input-cached)) + p.Cached*float64(cached) + p.Output*float64(output)) / 1e6
}

// PlansHealth is how plans went that use the same skills: such plans are of one kind.
type PlansHealth struct {
	Skills     []string `json:"skills"`
	Plans      int64    `json:"plans"`
	Failed     int64    `json:"failed"`
	AvgReplans float64  `json:"avg_replans"`
	Exhausted  int64    `json:"exhausted"` // plans that used up their replans
}

// SkillHealth counts the calls of a skill, those that did not succeed, and those whose response
// was too large to be passed on whole.
type SkillHealth struct {
	Skill  string `json:"skill"`
	Calls  int64  `json:"calls"`
	Failed int64  `json:"failed"`
	Large  int64  `json:"large"`
}

// SchemaList selects agents or workflows of the registry: all, or one.
type SchemaList struct {
	Name string `json:"name,omitempty"`
	Kind string `json:"kind,omitempty"` // KindAgent where it is empty, or KindWorkflow
}

// SchemaListResult are agents or workflows of the registry, without the built-in agents.
type SchemaListResult struct {
	Schemas []SchemaRow `json:"schemas"`
}

// SchemaRow is an agent as its prompt and its definition, or a workflow as its file and its
// graph.
type SchemaRow struct {
	Name    string          `json:"name"`
	Kind    string          `json:"kind"`
	Content string          `json:"content"` // the system prompt, without a soul; the file
	Schema  json.RawMessage `json:"json_schema"`
	ID      string          `json:"-"` // of the stored document
}

// Kinds of a stored row. A row that a later revision lacks is removed.
const (
	KindAgent    = "agent"
	KindWorkflow = "workflow"
	KindRemoved  = "gone"
)

// MessageList selects messages of a user, newest first.
type MessageList struct {
	Period
	Limit int    `json:"limit,omitempty"` // 1..100, default 20
	After string `json:"after,omitempty"`
}

// MessageListResult are messages of a user.
type MessageListResult struct {
	Messages []Message `json:"messages"`
	Cursor   string    `json:"cursor,omitempty"`
}

// Message is one row of a conversation. That of an assistant says what its whole turn
// used; agent and model are those that put out the most tokens in it.
type Message struct {
	MessageID    string    `json:"message_id"`
	SessionID    string    `json:"session_id"`
	TurnID       string    `json:"turn_id,omitempty"`
	PlanID       string    `json:"plan_id,omitempty"`
	Role         string    `json:"role"`
	Content      string    `json:"content"`
	Agent        string    `json:"agent_name,omitempty"`
	Model        string    `json:"model,omitempty"`
	InputTokens  int64     `json:"input_tokens,omitempty"`
	OutputTokens int64     `json:"output_tokens,omitempty"`
	LatencyMS    int64     `json:"latency_ms,omitempty"`
	TraceID      string    `json:"trace_id,omitempty"`
	SpanID       string    `json:"span_id,omitempty"` // in the traces that a collector got; empty: none did
	CreatedAt    time.Time `json:"created_at"`

	ToolCalls json.RawMessage `json:"tool_calls,omitempty"` // of tool_call and tool_response: name, args, id
}
