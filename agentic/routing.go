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

	"aob.dev/writ/agentic/agents"
	"aob.dev/writ/agentic/model"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/tracing"
)

// What is told of asks for operators: a log line by name when a turn has ended and when
// something went wrong, and figures by agent. None has a word of a user or a model.

// routing is whom an agent asked in a turn, and what came of it.
type routing struct {
	Asked   []askEnd `json:"asked,omitempty"`
	Dropped []string `json:"dropped,omitempty"` // beyond the cap
	Cap     string   `json:"cap,omitempty"`     // within, at, over; empty: it may ask nobody
	Did     string   `json:"did,omitempty"`     // its calls, for the prompts of the next turn
}

// askEnd is how one ask ended.
type askEnd struct {
	Agent string `json:"agent"`
	Ended string `json:"ended"` // success, error (data was missing), failure, held
}

// maxDid bounds what one turn tells the next one, in bytes, and of each call.
const (
	maxDid     = 2 << 10
	maxDidCall = 400
)

// routing reads it from the conversation, which has the calls of earlier tasks of the step,
// too.
func (l *loop) routing() routing {
	r := routing{Dropped: l.dropped}
	calls := map[string]model.Call{}
	for _, m := range l.req.Messages {
		for _, c := range m.Calls {
			calls[c.ID] = c
		}
		if m.Role != model.RoleTool {
			continue
		}
		c := calls[m.CallID]
		r.Did += cut(c.Name+" "+c.Arguments, maxDidCall/2) + ": " + cut(m.Text, maxDidCall/2) + "\n"
		i := slices.IndexFunc(l.tools, func(t *tool) bool { return t.Name == c.Name && t.asks != nil })
		var got struct {
			Status     string   `json:"status"`
			Violations []string `json:"violations"`
		}
		if i < 0 || len(decoded(json.RawMessage(m.Text), &got).Violations) > 0 {
			continue
		}
		ended := map[string]string{heardPartly: "error", heardNothing: "failure", taskHeld: taskHeld}[got.Status]
		r.Asked = append(r.Asked, askEnd{l.tools[i].asks(json.RawMessage(c.Arguments)), cmp.Or(ended, "success")})
	}
	r.Did = cut(r.Did, maxDid)
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

// agents that were asked, each once.
func (r routing) agents() []string {
	var out []string
	for _, o := range r.Asked {
		out = append(out, o.Agent)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// routed says once a turn whom its agent asked.
func (d *drive) routed(ctx context.Context) {
	var asked []any
	var names, ends []string
	failed := 0
	for _, o := range d.asked.Asked {
		asked, names, ends = append(asked, slog.String(o.Agent, o.Ended)), append(names, o.Agent), append(ends, o.Ended)
		d.cfg.figure("outcome", o.Ended)
		if o.Ended == "failure" {
			failed++
		}
	}
	if failed > 0 {
		errorEmit(ctx, d.cfg, d.agent.Agent, axisSome, true)
	}
	intents, limit := len(d.asked.Asked)+len(d.asked.Dropped), cmp.Or(d.asked.Cap, "within")
	d.cfg.figure("intents", []string{"0", "1", "2", "3+"}[min(intents, 3)])
	d.cfg.figure("cap", limit)
	said := []any{
		slog.String("plan_id", d.turn.PlanID), slog.String("trace_id", d.turn.TraceID), slog.String("agent", cmp.Or(d.agent.Agent, agents.Planner)),
		slog.Int("intent_count", intents), slog.String("cap", limit), slog.Any("dropped", d.asked.Dropped), slog.Group("outcomes", asked...),
	}
	if d.given != nil {
		said = append(said, slog.String("decision", d.given.Decision))
	}
	d.cfg.Log.InfoContext(ctx, "agent.routing", said...)
	trace.SpanFromContext(ctx).AddEvent("agent.routing", trace.WithAttributes(
		tracing.Agent.String(cmp.Or(d.agent.Agent, agents.Planner)), tracing.Intents.Int(intents), tracing.Cap.String(limit),
		tracing.Asked.StringSlice(names), tracing.Outcomes.StringSlice(ends)))
}

// Axes of what goes wrong when agents are asked.
const (
	axisFailed = 1 // the asked agent: it failed, took too long, or could not begin
	axisData   = 2 // the data that it works on was not available
	axisSome   = 3 // some of those that were asked
)

func errorEmit(ctx context.Context, cfg Config, agent string, axis int, final bool) {
	cfg.figure("axis", strconv.Itoa(axis))
	cfg.Log.InfoContext(ctx, "agent.error_emit", slog.String("sub_agent_id", agent), slog.Int("axis", axis), slog.Bool("is_final", final))
}

// failureOf says how an ask failed, for figures; empty: it did not.
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

// prior is what an agent that is asked now is told of the turn before: what others did
// there, and nothing where it was asked itself.
func (t Turn) prior(agent string) string {
	if t.Before == nil || slices.Contains(t.Before.Agents, agent) {
		return ""
	}
	return strings.TrimSpace(t.Before.Text)
}

// did is what the turn leaves for those that the next one asks.
func (d *drive) did(answer string) *catalog.Did {
	who := d.asked.agents()
	if len(who) == 0 {
		who = []string{cmp.Or(d.agent.Agent, agents.Planner)}
	}
	text := "Request: " + cut(d.task, maxDidCall) + "\nAnswer: " + cut(answer, maxDidCall) + "\n" + d.asked.Did
	return &catalog.Did{Agents: who, Text: cut(text, maxDid)}
}
