// Package agentic is the layer that thinks and seals. A manager drives a plan, a
// planner writes it, a task carries one step out; each is a service of its own
// with a key of its own. None acts: what leaves this layer are orders, model
// calls and display frames, and nothing else. It holds its signing keys and no
// storage, no shell, no skill endpoint.
package agentic

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"time"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/intents"
	"aob.dev/writ/internal/bus"
)

// Config of one role. Key is nil for the task role: its keys are ephemeral.
type Config struct {
	Bus    bus.Conn
	Key    *intents.Signer
	Origin string
	Model  model.Model
	Models map[string]model.Model // that agents may name; Model is for the others
	Now    func() time.Time
	Log    *slog.Logger
	// After is time.After; nil: that.
	After func(time.Duration) <-chan time.Time
	// Asked counts what an agent was asked, and how that failed; nil: nobody counts. It took
	// a time, of which its model and its calls had busy.
	Asked func(agent string, took, busy time.Duration, failure string)
	// Figure counts what happened in turns: a value of a bounded set; nil: nobody counts.
	Figure func(name, value string)
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

func (c Config) sealer(key intents.Signer) *Sealer {
	return &Sealer{key: key, bus: c.Bus, origin: c.Origin, now: c.Now, after: time.After}
}

// Times that bound delegations. A manager that hears nothing for longer says
// that the step failed.
const (
	placeTime = 10 * time.Second
	planTime  = 10 * time.Minute
	taskTime  = 20 * time.Minute

	produceTime = 2 * time.Minute
)

// workers bounds the turns that one process of a role works on at once.
const workers = 64

// delegate asks another role and decodes its reply.
func delegate(ctx context.Context, conn bus.Conn, subject string, wait time.Duration, in, out any) error {
	return delegateTo(ctx, conn.Request, subject, wait, in, out)
}

// delegateTo is delegate by another way of asking.
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

// silentError says that nobody serves a role, or that it did not answer in time.
type silentError struct {
	role string
	err  error
}

func (e *silentError) Error() string { return "no answer from the " + e.role + ": " + e.err.Error() }
func (e *silentError) Unwrap() error { return e.err }

// answer makes a bus handler of a function over JSON.
func answer[In, Out any](log *slog.Logger, fn func(context.Context, In) Out) bus.Handler {
	talk := talking(log, func(ctx context.Context, in In, _ func(progress)) Out { return fn(ctx, in) })
	return func(ctx context.Context, data []byte) []byte { return talk(ctx, data, nil) }
}

// talking makes one of a function that says how it comes along.
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
