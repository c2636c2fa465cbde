package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"strconv"
	"sync"
	"time"

	wire "github.com/mark3labs/mcp-go/mcp"

	"aob.dev/writ/bus"
	"aob.dev/writ/intents"
	"aob.dev/writ/internal/ratelimit"
	"aob.dev/writ/internal/visible"
)

// Limits of a server's log lines beside its answers.
const (
	maxAside  = 2048 // bytes of a line
	maxAsides = 500  // lines at once, and in each asideTime
	asideTime = time.Hour
	asideLate = time.Second // messages so soon after the end of a call may belong to it
)

// ServerMessage is a message of a server beside its answer to a call.
type ServerMessage struct {
	Level intents.Level
	Kind  string          // stderr, message or progress
	Text  string          // without secrets of the source
	Data  json.RawMessage // of a message that is no text
}

// asides logs a server's messages beside its answers: lines of standard error, log messages and
// progress. Progress belongs to the call whose token it has. The rest names no call: it belongs to
// the call in flight, if it is the only one and all calls so far were for the same user, because a
// server may report late on a call for another user. Secrets of the source are hidden and control
// characters escaped.
type asides struct {
	log   *slog.Logger
	hide  func(string) string
	limit *ratelimit.Limiter

	mu    sync.Mutex // guards the fields below
	calls map[string]pendingCall
	last  int  // number of the last call
	muted bool // further messages are dropped, which was logged

	owner  *string // user of all calls so far
	shared bool    // they were for several users

	ended   string // token of the call that ended last
	endedAt time.Time
}

// pendingCall is a call in flight.
type pendingCall struct {
	log        *slog.Logger
	onMessage  func(ServerMessage) // nil: nobody
	onProgress func(bus.Progress)  // likewise
}

func newAsides(log *slog.Logger, hide func(string) string) *asides {
	return &asides{log: log, hide: hide, limit: ratelimit.New(maxAsides, asideTime, ratelimit.Unshared(1), time.Now), calls: map[string]pendingCall{}}
}

// during gives a call in flight for somebody its token, until it ends.
func (a *asides) during(owner string, call pendingCall) (token string, end func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.owner == nil {
		a.owner = &owner
	}
	a.shared = a.shared || *a.owner != owner
	a.last++
	token = strconv.Itoa(a.last)
	a.calls[token] = call
	return token, func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.calls, a.ended)
		a.ended, a.endedAt = token, time.Now()
	}
}

// find is the call of a token. Without a token it is the only one in flight or just ended, if
// that is for the only user so far, or else the server itself.
func (a *asides) find(token string) pendingCall {
	if time.Since(a.endedAt) > asideLate {
		delete(a.calls, a.ended)
	}
	if call, there := a.calls[token]; there {
		return call
	}
	if token == "" && !a.shared && len(a.calls) == 1 {
		for _, call := range a.calls {
			return call
		}
	}
	return pendingCall{log: a.log}
}

// say logs one line, and passes it to the call that it belongs to.
func (a *asides) say(ctx context.Context, token string, x ServerMessage) {
	x.Text = visible.Line(a.hide(x.Text), maxAside)
	if a.hide(string(x.Data)) != string(x.Data) {
		x.Data = nil
	}
	_, may := a.limit.Allow(ratelimit.Caller{})
	a.mu.Lock()
	call, wasMuted := a.find(token), a.muted
	a.muted = !may
	a.mu.Unlock()
	if call.onMessage != nil {
		call.onMessage(x)
	}
	switch {
	case may:
		call.log.LogAttrs(ctx, levels[x.Level], "skill server", slog.String(x.Kind, x.Text))
	case !wasMuted:
		a.log.LogAttrs(ctx, slog.LevelWarn, "skill server writes too much, the rest is not logged")
	}
}

// levels in the log of this process, where a server's errors are no errors of ours.
var levels = map[intents.Level]slog.Level{
	intents.LevelDebug: slog.LevelDebug, intents.LevelInfo: slog.LevelInfo, intents.LevelWarning: slog.LevelWarn, intents.LevelError: slog.LevelWarn,
}

// notified takes a notification of the server.
func (a *asides) notified(n wire.JSONRPCNotification) {
	ctx, of := context.Background(), n.Params.AdditionalFields
	switch n.Method {
	case "notifications/message":
		x := ServerMessage{Level: levelOf(of["level"]), Kind: "message", Text: textOf(of["data"])}
		if _, text := of["data"].(string); !text {
			x.Data = json.RawMessage(x.Text)
		}
		a.say(ctx, "", x)
	case "notifications/progress":
		token := textOf(of["progressToken"])
		p := bus.Progress{Message: visible.Line(a.hide(textOf(cmp.Or(of["message"], any("")))), maxProgress)}
		p.Progress, _ = of["progress"].(float64)
		p.Total, _ = of["total"].(float64)
		a.mu.Lock()
		hear := a.calls[token].onProgress
		a.mu.Unlock()
		if hear != nil {
			hear(p)
		}
		text := textOf(of["progress"])
		if of["total"] != nil {
			text += " of " + textOf(of["total"])
		}
		if of["message"] != nil {
			text += ": " + textOf(of["message"])
		}
		a.say(ctx, token, ServerMessage{Level: intents.LevelInfo, Kind: "progress", Text: text})
	}
}

// maxProgress bounds the message of a call's progress, in bytes.
const maxProgress = 256

// levelOf is a level of the protocol.
func levelOf(name any) intents.Level {
	switch name {
	case "debug":
		return intents.LevelDebug
	case "warning":
		return intents.LevelWarning
	case "error", "critical", "alert", "emergency":
		return intents.LevelError
	}
	return intents.LevelInfo
}

// textOf is a text as it is, and anything else as JSON.
func textOf(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	raw, _ := json.Marshal(v) // it was JSON
	return string(raw)
}
