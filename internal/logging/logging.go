// Package logging processes every line of the operators' log. It adds the request and the agent of
// a line, and redacts data that must not be logged: addresses of people, their numbers, keys and
// tokens.
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

// work is the subject of lines.
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

// By adds the working agent, its action, and its duration.
func By(ctx context.Context, agent, action string) context.Context {
	w := workOf(ctx)
	w.agent, w.action, w.began = agent, action, time.Now()
	return context.WithValue(ctx, workKey{}, w)
}

// WithContext adds the values of a context to lines of a logger without a context of their own.
func WithContext(ctx context.Context, log *slog.Logger) *slog.Logger {
	h, ok := log.Handler().(*handler)
	if !ok {
		return log
	}
	return slog.New(&handler{next: h.next, work: workOf(ctx)})
}

// handler redacts records and passes them on.
type handler struct {
	next slog.Handler
	work work // of lines without a context
}

// Wrap returns a redacting handler around another one.
func Wrap(next slog.Handler) slog.Handler { return &handler{next: next} }

func (h *handler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.next.Enabled(ctx, level)
}

func (h *handler) Handle(ctx context.Context, r slog.Record) error {
	w := workOf(ctx)
	if w == (work{}) {
		w = h.work
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
	return &handler{next: h.next.WithAttrs(clean), work: h.work}
}

func (h *handler) WithGroup(name string) slog.Handler {
	return &handler{next: h.next.WithGroup(Text(name)), work: h.work}
}
