// Package logging is what every line of the operators' log goes through. It says of which
// request a line is and which agent wrote it, and takes out what no log may hold: addresses
// of people, their numbers, keys and tokens.
package logging

import (
	"context"
	"io"
	"log/slog"
	"time"
)

// New is the logger of a process: lines of JSON for machines, of text for people.
func New(w io.Writer, level slog.Level, text bool) *slog.Logger {
	o := &slog.HandlerOptions{Level: level}
	if text {
		return slog.New(Wrap(slog.NewTextHandler(w, o)))
	}
	return slog.New(Wrap(slog.NewJSONHandler(w, o).WithAttrs([]slog.Attr{slog.String("service", "writ")})))
}

// work is what lines are about.
type work struct {
	request       string
	agent, action string
	began         time.Time
}

type workKey struct{}

func workOf(ctx context.Context) work {
	w, _ := ctx.Value(workKey{}).(work)
	return w
}

// In has the lines of a context name the request that they are of.
func In(ctx context.Context, request string) context.Context {
	w := workOf(ctx)
	w.request = request
	return context.WithValue(ctx, workKey{}, w)
}

// By has them name the agent that is at work too, what it does, and for how long it has.
func By(ctx context.Context, agent, action string) context.Context {
	w := workOf(ctx)
	w.agent, w.action, w.began = agent, action, time.Now()
	return context.WithValue(ctx, workKey{}, w)
}

// Of names what a context says in the lines of a logger that have no context of their own.
func Of(ctx context.Context, log *slog.Logger) *slog.Logger {
	h, ok := log.Handler().(*handler)
	if !ok {
		return log
	}
	return slog.New(&handler{next: h.next, of: workOf(ctx)})
}

// handler redacts what it hands on.
type handler struct {
	next slog.Handler
	of   work // of lines without a context
}

// Wrap is a handler that writes what another one may.
func Wrap(next slog.Handler) slog.Handler { return &handler{next: next} }

func (h *handler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.next.Enabled(ctx, level)
}

func (h *handler) Handle(ctx context.Context, r slog.Record) error {
	w := workOf(ctx)
	if w == (work{}) {
		w = h.of
	}
	out := slog.NewRecord(r.Time, r.Level, Text(r.Message), r.PC)
	took := false
	r.Attrs(func(a slog.Attr) bool {
		switch {
		case a.Key == "trace_id" && w.request == "":
			w.request = a.Value.String()
		case a.Key == "duration_ms":
			took = true
		}
		out.AddAttrs(attr(a))
		return true
	})
	if w.request != "" {
		out.AddAttrs(slog.String("request_id", Text(w.request)))
	}
	if w.agent != "" {
		out.AddAttrs(slog.String("agent_id", Text(w.agent)), slog.String("action", Text(w.action)))
		if !took {
			out.AddAttrs(slog.Int64("duration_ms", time.Since(w.began).Milliseconds()))
		}
	}
	return h.next.Handle(ctx, out)
}

func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	clean := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		clean[i] = attr(a)
	}
	return &handler{next: h.next.WithAttrs(clean), of: h.of}
}

func (h *handler) WithGroup(name string) slog.Handler {
	return &handler{next: h.next.WithGroup(Text(name)), of: h.of}
}
