package agentic

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"aob.dev/writ/agentic/agents"
	"aob.dev/writ/agentic/model"
	"aob.dev/writ/intents/catalog"
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
	failed := 0
	for _, o := range d.asked.Asked {
		asked = append(asked, slog.String(o.Agent, o.Ended))
		if o.Ended == "failure" {
			failed++
		}
	}
	d.cfg.Log.InfoContext(ctx, "agent.routing", slog.String("plan_id", d.turn.PlanID), slog.String("trace_id", d.turn.TraceID), slog.String("agent", cmp.Or(d.agent.Agent, agents.Planner)),
		slog.Int("intent_count", len(d.asked.Asked)+len(d.asked.Dropped)), slog.String("cap", cmp.Or(d.asked.Cap, "within")), slog.Any("dropped", d.asked.Dropped), slog.Group("outcomes", asked...))
	if failed > 0 {
		errorEmit(ctx, d.cfg.Log, d.agent.Agent, axisSome, true)
	}
}

// Axes of what goes wrong when agents are asked.
const (
	axisFailed = 1 // the asked agent: it failed, took too long, or could not begin
	axisData   = 2 // the data that it works on was not available
	axisSome   = 3 // some of those that were asked
)

func errorEmit(ctx context.Context, log *slog.Logger, agent string, axis int, final bool) {
	log.InfoContext(ctx, "agent.error_emit", slog.String("sub_agent_id", agent), slog.Int("axis", axis), slog.Bool("is_final", final))
}

// failureOf says how an ask failed, for figures; empty: it did not.
func failureOf(r runReply, err error) string {
	var refused *OrderError
	switch {
	case errors.As(err, &refused):
		return "refused"
	case err != nil:
		return "not_begun"
	case r.Status == taskDone:
		return ""
	case r.TimedOut:
		return "timeout"
	}
	return "failed"
}

// DispatchBuckets are the bounds of the histogram of asks, in milliseconds.
var DispatchBuckets = []float64{100, 250, 500, 1000, 2500, 5000, 10_000, 30_000, 60_000, 120_000}

// Dispatches are the asks of one agent in this process.
type Dispatches struct {
	Count  uint64
	SumMS  float64
	UpTo   map[float64]uint64 // by DispatchBuckets
	Errors map[string]float64 // by what went wrong
}

// Asked counts asks by the agent that was asked.
type Asked struct {
	mu sync.Mutex // guards of
	of map[string]*Dispatches
}

func (a *Asked) count(agent string, took time.Duration, failure string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.of == nil {
		a.of = make(map[string]*Dispatches)
	}
	d := a.of[agent]
	if d == nil {
		d = &Dispatches{UpTo: make(map[float64]uint64), Errors: make(map[string]float64)}
		a.of[agent] = d
	}
	ms := float64(took.Milliseconds())
	d.Count++
	d.SumMS += ms
	for _, bound := range DispatchBuckets {
		if ms <= bound {
			d.UpTo[bound]++
		}
	}
	if failure != "" {
		d.Errors[failure]++
	}
}

// Each is a copy of the counts.
func (a *Asked) Each() map[string]Dispatches {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := make(map[string]Dispatches, len(a.of))
	for agent, d := range a.of {
		out[agent] = Dispatches{d.Count, d.SumMS, maps.Clone(d.UpTo), maps.Clone(d.Errors)}
	}
	return out
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
