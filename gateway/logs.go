package gateway

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"time"

	"github.com/coder/websocket"
	"github.com/gin-gonic/gin"

	"aob.dev/writ/bus"
	"aob.dev/writ/intents"
	"aob.dev/writ/internal/clock"
	"aob.dev/writ/internal/problem"
	"aob.dev/writ/internal/problem/edge"
)

// routeLogs is the route of the stream address that logs.stream returned.
const routeLogs = "/v1/logs/:id"

// logMessage is sent to a client for each line.
type logMessage struct {
	Cursor string          `json:"cursor"` // ?after= of another stream starts after this line
	Line   json.RawMessage `json:"line"`   // catalog.LogLine
}

// getLogs is GET /v1/logs/{id}, a WebSocket: it opens a stream for the user who requested it,
// sends the existing lines and new ones, and ends with the run, or with the user's right to read
// logs. The stream's id, which names its process, can be used once.
func (g *Gateway) getLogs(c *gin.Context, a actor) error {
	if err := g.may(c.Request.Context(), a, "logs.stream"); err != nil {
		return err
	}
	id := c.Param("id")
	instance, _, ok := strings.Cut(id, ".")
	if !ok || !identifier.MatchString(instance) {
		return problem.New(intents.NotFound, "", "no such stream")
	}
	if !strings.EqualFold(c.GetHeader("Upgrade"), "websocket") {
		return problem.New(intents.SchemaInvalid, "", "a log is followed over a WebSocket: open the address with a client of WebSockets") // and it stays unopened
	}
	s := logStream{g: g, actor: a, subject: bus.Logs(instance), id: id}
	opened, err := s.ask(c.Request.Context(), bus.LogsRequest{ID: id, After: c.Query("after"), Tenant: a.tenant, UserID: a.user, Client: intents.ClientOf(a.keyID)})
	if err != nil {
		return err
	}
	s.since = time.Unix(opened.Since, 0)
	if err := g.mayStill(c.Request.Context(), a, "logs.stream", s.since); err != nil {
		return err
	}
	conn, err := websocket.Accept(c.Writer, c.Request, nil)
	if err != nil {
		return nil // already answered
	}
	defer func() { _ = conn.CloseNow() }()                            // if it is still open
	ctx := conn.CloseRead(context.WithoutCancel(c.Request.Context())) // a client sends nothing
	open, stop := clock.UntilStop(c.Request.Context())                // ends with the client, too
	defer stop()
	unhook := context.AfterFunc(ctx, stop)
	defer unhook()
	code, why := s.follow(open, conn, c.Query("follow") == "false")
	g.cfg.Log.InfoContext(ctx, "a log is not followed any more", slog.String("why", why), slog.String("trace_id", edge.Trace(c)))
	_ = conn.Close(code, why) // fails only if the client has disconnected
	return nil
}

// logStream is one client that follows a log.
type logStream struct {
	g       *Gateway
	actor   actor
	subject string // subject of the process that has the stream
	id      string
	since   time.Time // of the intent
}

// ask sends a request to that process.
func (s logStream) ask(ctx context.Context, q bus.LogsRequest) (bus.LogsReply, error) {
	reply, err := ask[bus.LogsReply](ctx, s.g.cfg.Bus, s.subject, q)
	if p := problem.FromError(err); err != nil && p.Code == intents.DispatchUnavailable {
		err = problem.New(intents.NotFound, "", "no such stream: the process that had it has ended; open another one")
	}
	if err == nil && reply.Code != "" {
		p := problem.New(intents.Code(reply.Code), "", reply.Reason)
		if p.Code == intents.SchemaInvalid {
			p.Pointer = "/after"
		}
		err = p
	}
	return reply, err
}

// Bounds of one client.
const (
	logWrite = 30 * time.Second // to take a line
	logPing  = 30 * time.Second // to answer
)

// follow sends lines until there are no more, or with now only the existing ones, and returns why
// it ends.
func (s logStream) follow(ctx context.Context, conn *websocket.Conn, now bool) (code websocket.StatusCode, why string) {
	for {
		reply, err := s.ask(ctx, bus.LogsRequest{ID: s.id, Now: now})
		if err == nil {
			err = s.g.mayStill(ctx, s.actor, "logs.stream", s.since)
		}
		switch {
		case clock.Stopping(ctx):
			return websocket.StatusGoingAway, "the server stops: ask for another stream after its restart, after the last cursor"
		case ctx.Err() != nil:
			return websocket.StatusNormalClosure, "the client has gone"
		}
		switch refused := problem.FromError(err); {
		case err == nil:
		case refused.Code == intents.RBACForbidden || refused.Code == intents.GrantInvalid:
			return websocket.StatusPolicyViolation, "the right to read this log has ended"
		default:
			return websocket.StatusTryAgainLater, "the log cannot be read now: open another stream, after the last cursor"
		}
		for _, l := range reply.Lines {
			if err := s.send(ctx, conn, l); err != nil {
				return websocket.StatusNormalClosure, "the client has gone"
			}
		}
		if reply.Ended {
			return websocket.StatusNormalClosure, "the run has ended"
		}
		if now && len(reply.Lines) == 0 {
			return websocket.StatusNormalClosure, "these are all lines so far"
		}
		if len(reply.Lines) == 0 && !alive(ctx, conn) {
			return websocket.StatusNormalClosure, "the client has gone"
		}
	}
}

func (s logStream) send(ctx context.Context, conn *websocket.Conn, l bus.LogLine) error {
	raw, err := json.Marshal(logMessage{l.Cursor, l.Line})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, logWrite)
	defer cancel()
	return conn.Write(ctx, websocket.MessageText, raw)
}

// alive reports whether the client answers.
func alive(ctx context.Context, conn *websocket.Conn) bool {
	ctx, cancel := context.WithTimeout(ctx, logPing)
	defer cancel()
	return conn.Ping(ctx) == nil
}
