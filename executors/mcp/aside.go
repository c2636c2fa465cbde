package mcp

import (
	"context"
	"encoding/json"
	"log/slog"
	"strconv"
	"sync"
	"time"

	wire "github.com/mark3labs/mcp-go/mcp"

	"aob.dev/writ/internal/ratelimit"
)

// Limits of what is logged of a server beside its answers.
const (
	maxAside  = 2048 // bytes of a line
	maxAsides = 500  // lines at once, and in each asideTime
	asideTime = time.Hour
	asideLate = time.Second // what is said so soon after the end of a call may be of it
)

// asides logs what a server says beside its answers: lines of standard error, log messages
// and progress. Progress belongs to the call whose token it has; the rest to the call in
// flight, if there is one alone. Secrets of the source are hidden and control characters
// escaped.
type asides struct {
	log   *slog.Logger
	hide  func(string) string
	limit *ratelimit.Limiter

	mu    sync.Mutex // guards what follows
	calls map[string]*slog.Logger
	last  int  // number of the last call
	muted bool // what is said is not logged, which was logged

	ended   string // token of the call that ended last
	endedAt time.Time
}

func newAsides(log *slog.Logger, hide func(string) string) *asides {
	return &asides{log: log, hide: hide, limit: ratelimit.New(maxAsides, asideTime, 1, time.Now), calls: map[string]*slog.Logger{}}
}

// during gives a call in flight its token, until it ends.
func (a *asides) during(log *slog.Logger) (token string, end func()) {
	if log == nil {
		log = a.log
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.last++
	token = strconv.Itoa(a.last)
	a.calls[token] = log
	return token, func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.calls, a.ended)
		a.ended, a.endedAt = token, time.Now()
	}
}

// of is the log of a call, or of the only one in flight or just ended, or else of the
// server.
func (a *asides) of(token string) *slog.Logger {
	if time.Since(a.endedAt) > asideLate {
		delete(a.calls, a.ended)
	}
	if log := a.calls[token]; log != nil {
		return log
	}
	if len(a.calls) == 1 {
		for _, log := range a.calls {
			return log
		}
	}
	return a.log
}

// say logs one line.
func (a *asides) say(ctx context.Context, token string, level slog.Level, kind, text string) {
	_, may := a.limit.Allow("")
	a.mu.Lock()
	log, wasMuted := a.of(token), a.muted
	a.muted = !may
	a.mu.Unlock()
	switch {
	case may:
		log.LogAttrs(ctx, level, "skill server", slog.String(kind, printable(a.hide(text), maxAside)))
	case !wasMuted:
		a.log.LogAttrs(ctx, slog.LevelWarn, "skill server writes too much, the rest is not logged")
	}
}

// notified takes a notification of the server.
func (a *asides) notified(n wire.JSONRPCNotification) {
	ctx, of := context.Background(), n.Params.AdditionalFields
	switch n.Method {
	case "notifications/message":
		a.say(ctx, "", levelOf(of["level"]), "message", textOf(of["data"]))
	case "notifications/progress":
		text := textOf(of["progress"])
		if of["total"] != nil {
			text += " of " + textOf(of["total"])
		}
		if of["message"] != nil {
			text += ": " + textOf(of["message"])
		}
		a.say(ctx, textOf(of["progressToken"]), slog.LevelInfo, "progress", text)
	}
}

// levelOf is a level of the protocol.
func levelOf(name any) slog.Level {
	switch name {
	case "debug":
		return slog.LevelDebug
	case "warning", "error", "critical", "alert", "emergency":
		return slog.LevelWarn
	}
	return slog.LevelInfo
}

// textOf is a text as it is, and anything else as JSON.
func textOf(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	raw, _ := json.Marshal(v) // it was JSON
	return string(raw)
}
