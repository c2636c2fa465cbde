// Package agentic is the layer that thinks and signs. A manager runs a plan, a planner writes it,
// a task executes one step; each is a service of its own with a key of its own. None acts: the
// only outputs of this layer are intents, model calls and display frames. It has its signing keys
// and no storage, no shell, no skill endpoint.
package agentic

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"time"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/bus"
	"aob.dev/writ/intents"
	"aob.dev/writ/state/agents"
)

// Config of one role. Key is nil for the task role: its keys are ephemeral.
type Config struct {
	Bus    bus.Conn
	Key    *intents.Signer
	Origin string
	Model  model.Model
	Models map[string]model.Model // named by agents; Model is the default
	Now    func() time.Time
	Log    *slog.Logger
	// StepTime bounds a step, the writing of a plan, and each run of a built-in agent; 0:
	// DefaultStepTime.
	StepTime time.Duration
	// After is time.After; nil: that.
	After func(time.Duration) <-chan time.Time
	// CountAsk counts an ask to an agent, with its failure; nil: not counted. took is the total
	// time, busy the part spent in its model and its calls.
	CountAsk func(agent string, took, busy time.Duration, failure string)
	// Figure counts events in turns: a value of a bounded set; nil: not counted.
	Figure func(name, value string)
}

// DefaultStepTime is the time limit of a step, unless the settings have another.
const DefaultStepTime = 15 * time.Minute

func (c Config) stepTime() time.Duration { return cmp.Or(c.StepTime, DefaultStepTime) }

// builtin returns a built-in agent with the time limits of the settings. One that it asks may take
// a fifth of its time.
func (c Config) builtin(name string) *agents.Agent {
	agent := *agents.Builtin(name)
	agent.Limits.Seconds = int(c.stepTime() / time.Second)
	agent.Limits.AskSeconds = max(1, agent.Limits.Seconds/5)
	return &agent
}

func (c Config) after(d time.Duration) <-chan time.Time {
	if c.After != nil {
		return c.After(d)
	}
	return time.After(d)
}

func (c Config) figure(name, value string) {
	if c.Figure != nil {
		c.Figure(name, value)
	}
}

func (c Config) submitter(key intents.Signer) *Submitter {
	return &Submitter{key: key, bus: c.Bus, origin: c.Origin, now: c.Now, after: time.After}
}

// Time limits of delegations. Work with a model may take its own limit, and lateTime more for its
// last words. A manager without an answer for longer fails the step.
const (
	placeTime = 10 * time.Second
	lateTime  = 5 * time.Minute

	callTime = 30 * time.Second // that a client's call waits for its turn
)

// workers bounds the turns that one process of a role works on at once, shared by tenants and API
// keys. atOnce bounds its requests of each kind, most of which may wait for their turn: requests
// that waited on the bus would be served in order of arrival, and look like those of a process
// that is gone.
const (
	workers = 64
	atOnce  = 2048
)

// keyOf returns the caller for whom a grant was issued: an API key, or whose access token.
func keyOf(grant string) string {
	var g struct {
		Act intents.Act `json:"act"`
	}
	if intents.PeekClaims(grant, &g) != nil {
		return ""
	}
	return intents.CallerOf(g.Act.Client)
}

// delegate sends a request to another role and decodes its reply.
func delegate(ctx context.Context, conn bus.Conn, subject string, wait time.Duration, in, out any) error {
	return delegateTo(ctx, conn.Request, subject, wait, in, out)
}

// delegateTo is delegate with another way of sending.
func delegateTo(ctx context.Context, ask func(context.Context, string, []byte) ([]byte, error), subject string, wait time.Duration, in, out any) error {
	msg, err := json.Marshal(in)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	reply, err := ask(ctx, subject, msg)
	if err != nil {
		role, _, _ := strings.Cut(strings.TrimPrefix(subject, bus.Agent("")), ".")
		return &silentError{role, err}
	}
	return json.Unmarshal(reply, out)
}

// silentError means that nobody serves a role, or that it did not answer in time.
type silentError struct {
	role string
	err  error
}

func (e *silentError) Error() string { return "no answer from the " + e.role + ": " + e.err.Error() }
func (e *silentError) Unwrap() error { return e.err }

// answer turns a function over JSON into a bus handler.
func answer[In, Out any](log *slog.Logger, fn func(context.Context, In) Out) bus.Handler {
	talk := talking(log, func(ctx context.Context, in In, _ func(progress)) Out { return fn(ctx, in) })
	return func(ctx context.Context, data []byte) []byte { return talk(ctx, data, nil) }
}

// talking does the same for a function that reports its progress.
func talking[In, Out any](log *slog.Logger, fn func(context.Context, In, func(progress)) Out) bus.Talker {
	return func(ctx context.Context, data []byte, say func([]byte)) []byte {
		var in In
		if err := json.Unmarshal(data, &in); err != nil {
			log.ErrorContext(ctx, "delegation", slog.String("error", err.Error()))
			return nil
		}
		out, err := json.Marshal(fn(ctx, in, func(p progress) {
			raw, _ := json.Marshal(p) // plain data
			say(raw)
		}))
		if err != nil {
			log.ErrorContext(ctx, "delegation", slog.String("error", err.Error()))
		}
		return out
	}
}
