package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"

	"aob.dev/writ/bus"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/clock"
	"aob.dev/writ/internal/problem"
)

// A stream is server-sent events, one per frame:
//
//	id: 1792540800000007
//	event: status
//	data: {"seq":1792540800000007,"kind":"status","data":{…}}
//
// It ends after done, and after held, when the plan waits for people; a held event of an intent
// that no longer waits does not end it. A client that lost the stream continues with
// GET /agent/plans/{plan_id}/events and the header Last-Event-ID; without the header it gets the
// turn from its beginning, as far back as ten minutes. It does the same with a stream that ends
// without done or held, such as after the error with which a server that stops ends it. The first event of POST /agent/run names
// the plan and has no id. A closed plan whose frames are gone still returns its answer or error
// and done; 204 means that there is nothing after Last-Event-ID.

// writeTimeout is how long a client may take to read one event.
const writeTimeout = 30 * time.Second

// sse writes events to a client.
type sse struct {
	w       http.ResponseWriter
	control *http.ResponseController
	begun   bool
	err     error // the first one; after it nothing more is written
}

func newSSE(w http.ResponseWriter) *sse {
	return &sse{w: w, control: http.NewResponseController(w)}
}

// send writes an event and reports whether more may follow: the client is connected, and the
// stream has not ended.
func (s *sse) send(e event) bool {
	if e.Kind == "" {
		s.write(": nothing new\n\n")
		return s.err == nil
	}
	data, err := json.Marshal(e) // one line: Marshal compacts its input
	if err != nil {
		s.err = err
		return false
	}
	id := ""
	if e.Seq > 0 {
		id = fmt.Sprintf("id: %d\n", e.Seq)
	}
	s.write(fmt.Sprintf("%sevent: %s\ndata: %s\n\n", id, kindLine(e.Kind), data))
	return s.err == nil && e.Kind != bus.FramePendingApproval && e.Kind != bus.FrameDone
}

// kindLine returns the kind if it is known: another one could contain line breaks, and so write
// lines of its own.
func kindLine(k bus.FrameKind) bus.FrameKind {
	switch k {
	case bus.FrameStatus, bus.FrameChildContent, bus.FrameToken, bus.FramePendingApproval, bus.FrameAnswer, bus.FrameError, bus.FrameDone, bus.FrameAction, bus.FrameRequest:
		return k
	default:
		return "unknown"
	}
}

// data sends plain data as the data of an event.
func (s *sse) data(v any) {
	raw, _ := json.Marshal(v) // one line
	s.write("data: " + string(raw) + "\n\n")
}

func (s *sse) write(text string) {
	if s.err != nil {
		return
	}
	if !s.begun {
		s.begun = true
		h := s.w.Header()
		h.Set("Content-Type", "text/event-stream")
		h.Set("X-Accel-Buffering", "no") // nginx would buffer events
		s.w.WriteHeader(http.StatusOK)
	}
	if err := s.control.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		s.err = err
		return
	}
	if _, s.err = s.w.Write([]byte(text)); s.err == nil {
		s.err = s.control.Flush()
	}
}

// streamTurn is the stream of POST /agent/run.
func (g *Gateway) streamTurn(c *gin.Context, t turn) error {
	out := newSSE(c.Writer)
	out.send(newEvent(bus.FrameStatus, bus.StatusData{State: "accepted", PlanID: t.plan, SessionID: t.session, TurnID: t.id}))
	return g.stream(c, t, 0, g.pace.quiet, out, out.send)
}

// getEvents is GET /agent/plans/{plan_id}/events.
func (g *Gateway) getEvents(c *gin.Context, who caller) error {
	after, err := lastEventID(c)
	if err != nil {
		return err
	}
	a, planID, err := g.identifyForPlan(c, who)
	if err != nil {
		return err
	}
	view, err := g.viewPlan(c.Request.Context(), a, planID)
	if err != nil {
		return err
	}
	t := turn{actor: a, id: view.TurnID, plan: view.PlanID}
	out := newSSE(c.Writer)
	send := func(e event) bool {
		more := out.send(e)
		return more || out.err == nil && e.Kind == bus.FramePendingApproval && g.released(c.Request.Context(), a, view, e)
	}
	if view.Status.Ended() {
		return g.stream(c, t, after, g.pace.closed, out, send)
	}
	out.send(event{}) // tells the client that it is connected
	return g.stream(c, t, after, g.pace.quiet, out, send)
}

// released reports whether an event from before concerns an approval that no longer waits. For
// intents of others this is unknown: then the stream ends, and continues after Last-Event-ID.
func (g *Gateway) released(ctx context.Context, a actor, view catalog.PlanView, e event) bool {
	var h bus.PendingApprovalData
	switch {
	case view.Status.Ended():
		return true
	case json.Unmarshal(e.Data, &h) != nil || h.Approval.IntentID == "" || view.UserID != a.user:
		return false
	}
	page, err := g.approvals(ctx, a, h.Approval.IntentID)
	return err == nil && len(page.Approvals) == 0
}

// stream follows a turn to its end. If the frames end before the turn does, the rest is created
// from the plan.
func (g *Gateway) stream(c *gin.Context, t turn, after uint64, quiet time.Duration, out *sse, send func(event) bool) error {
	view, err := g.follow(c.Request.Context(), t, after, quiet, send)
	switch ctx := c.Request.Context(); {
	case clock.Stopping(ctx):
		p := problem.Stopped("", t.plan)
		if !out.begun {
			return p
		}
		p.TraceID = t.trace
		raw, _ := json.Marshal(p) // plain data
		out.send(newEvent(bus.FrameError, bus.ErrorData{Code: string(p.Code), Reason: p.Detail + ": " + p.Hint, Failure: raw}))
		return nil
	case ctx.Err() != nil:
		return nil //nolint:nilerr // the client has gone; the plan goes on
	case err != nil || view == nil:
		return err
	case after > 0 && !out.begun:
		c.Status(http.StatusNoContent)
		return nil
	}
	for _, e := range closing(*view) {
		out.send(e)
	}
	return nil
}

func lastEventID(c *gin.Context) (uint64, error) {
	raw := c.GetHeader("Last-Event-ID")
	if raw == "" {
		return 0, nil
	}
	id, err := strconv.ParseUint(raw, 10, 53)
	if err != nil {
		return 0, problem.New(intents.SchemaInvalid, "", "the header Last-Event-ID must be the id of an event")
	}
	return id, nil
}
