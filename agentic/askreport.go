package agentic

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel/trace"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/tracing"
	"aob.dev/writ/internal/visible"
)

// Reports about asks for operators: a named log line when a turn has ended and when something
// went wrong, and figures by agent. None contains text of a user or a model.

// askReport lists the agents asked in a turn, with the results.
type askReport struct {
	Ends    []askEnd `json:"asked,omitempty"`
	Dropped []string `json:"dropped,omitempty"` // beyond the cap
	Cap     string   `json:"cap,omitempty"`     // within, at, over; empty: it may ask nobody
	CallLog string   `json:"did,omitempty"`     // its calls, for the prompts of the next turn
}

// askEnd is how one ask ended.
type askEnd struct {
	Agent string `json:"agent"`
	Ended string `json:"ended"` // success, error (data was missing), failure, held
}

// maxTurnSummary bounds the summary of one turn for the next one, in bytes, and the part of each
// call.
const (
	maxTurnSummary     = 2 << 10
	maxTurnSummaryCall = 400
)

// askReport builds the report from the conversation, which includes the calls of earlier tasks of
// the step.
func (l *loop) askReport() askReport {
	r := askReport{Dropped: l.dropped}
	calls := map[string]model.Call{}
	for _, m := range l.req.Messages {
		for _, c := range m.Calls {
			calls[c.ID] = c
		}
		if m.Role != model.RoleTool {
			continue
		}
		c := calls[m.CallID]
		r.CallLog += visible.Cut(c.Name+" "+c.Arguments, maxTurnSummaryCall/2) + ": " + visible.Cut(m.Text, maxTurnSummaryCall/2) + "\n"
		i := slices.IndexFunc(l.tools, func(t *tool) bool { return t.Name == c.Name && t.asks != nil })
		var got struct {
			Status     string   `json:"status"`
			Violations []string `json:"violations"`
		}
		if i < 0 || len(decoded(json.RawMessage(m.Text), &got).Violations) > 0 {
			continue
		}
		ended := map[string]string{askPartial: "error", askUnavailable: "failure", taskPendingApproval: taskPendingApproval}[got.Status]
		r.Ends = append(r.Ends, askEnd{l.tools[i].asks(json.RawMessage(c.Arguments)), cmp.Or(ended, "success")})
	}
	r.CallLog = visible.Cut(r.CallLog, maxTurnSummary)
	switch {
	case len(l.dropped) > 0:
		r.Cap = "over"
	case l.fanOut == l.agent.Limits.FanOut:
		r.Cap = "at"
	case slices.ContainsFunc(l.tools, func(t *tool) bool { return t.asks != nil }):
		r.Cap = "within"
	}
	return r
}

// agents returns the asked agents, each once.
func (r askReport) agents() []string {
	var out []string
	for _, o := range r.Ends {
		out = append(out, o.Agent)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// logAsks logs once per turn which agents were asked.
func (c *conversation) logAsks(ctx context.Context) {
	var asked []any
	var names, ends []string
	failed := 0
	for _, o := range c.asks.Ends {
		asked, names, ends = append(asked, slog.String(o.Agent, o.Ended)), append(names, o.Agent), append(ends, o.Ended)
		c.cfg.figure("outcome", o.Ended)
		if o.Ended == "failure" {
			failed++
		}
	}
	if failed > 0 {
		errorEmit(ctx, c.cfg, c.agentName(), axisSome, true)
	}
	intents, limit := len(c.asks.Ends)+len(c.asks.Dropped), cmp.Or(c.asks.Cap, "within")
	c.cfg.figure("intents", []string{"0", "1", "2", "3+"}[min(intents, 3)])
	c.cfg.figure("cap", limit)
	said := []any{
		slog.String("plan_id", c.turn.PlanID), slog.String("trace_id", c.turn.TraceID), slog.String("agent", c.agentName()),
		slog.Int("intent_count", intents), slog.String("cap", limit), slog.Any("dropped", c.asks.Dropped), slog.Group("outcomes", asked...),
	}
	if c.route != nil {
		said = append(said, slog.String("decision", c.route.Decision))
	}
	c.cfg.Log.InfoContext(ctx, "agent.routing", said...)
	trace.SpanFromContext(ctx).AddEvent("agent.routing", trace.WithAttributes(
		tracing.Agent.String(c.agentName()), tracing.Intents.Int(intents), tracing.Cap.String(limit),
		tracing.AskedAgents.StringSlice(names), tracing.Outcomes.StringSlice(ends)))
}

// Axes of failure when agents are asked.
const (
	axisFailed = 1 // the asked agent: it failed, timed out, or could not begin
	axisData   = 2 // its data was not available
	axisSome   = 3 // some of those that were asked
)

func errorEmit(ctx context.Context, cfg Config, agent string, axis int, final bool) {
	cfg.figure("axis", strconv.Itoa(axis))
	cfg.Log.InfoContext(ctx, "agent.error_emit", slog.String("sub_agent_id", agent), slog.Int("axis", axis), slog.Bool("is_final", final))
}

// failureOf classifies the failure of an ask, for figures; empty: it did not fail.
func failureOf(r runReply, err error) string {
	switch {
	case err != nil:
		return "refused"
	case r.TimedOut:
		return "timeout"
	case r.Status != taskDone:
		return "failed"
	}
	return ""
}

// prior returns what an asked agent receives about the turn before: the work of others, and
// nothing if it was asked itself.
func (t Turn) prior(agent string) string {
	if t.Before == nil || slices.Contains(t.Before.Agents, agent) {
		return ""
	}
	return strings.TrimSpace(t.Before.Text)
}

// turnSummary returns the summary of the turn for agents asked in the next one.
func (c *conversation) turnSummary(answer string) *catalog.TurnSummary {
	who := c.asks.agents()
	if len(who) == 0 {
		who = []string{c.agentName()}
	}
	text := "Request: " + visible.Cut(c.task, maxTurnSummaryCall) + "\nAnswer: " + visible.Cut(answer, maxTurnSummaryCall) + "\n" + c.asks.CallLog
	return &catalog.TurnSummary{Agents: who, Text: visible.Cut(text, maxTurnSummary)}
}
