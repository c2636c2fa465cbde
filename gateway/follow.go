package gateway

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"aob.dev/writ/bus"
	"aob.dev/writ/intents/catalog"
)

// event is a frame as a client sees it. Seq is the SSE id; it is 0 in an event of the gateway's
// own, after which a client cannot resume. A zero event means that no frame has arrived for a
// while.
type event struct {
	Seq  uint64          `json:"seq,omitempty"`
	Kind bus.FrameKind   `json:"kind"`
	Data json.RawMessage `json:"data,omitempty"`
}

// newEvent creates an event of the gateway's own.
func newEvent(kind bus.FrameKind, data any) event {
	raw, _ := json.Marshal(data) // plain data
	return event{Kind: kind, Data: raw}
}

// follow calls fn with a turn's frames after a sequence number, until fn returns false, ctx ends,
// or the plan has been closed and no more frames arrive: then it returns the plan. Frames are
// only for display and may be lost. The plan's record decides, so the plan is read when no frames
// arrive.
func (g *Gateway) follow(ctx context.Context, t turn, after uint64, quiet time.Duration, fn func(event) bool) (*catalog.PlanView, error) {
	ctx, cancel := context.WithCancel(ctx)
	reader := g.frames(ctx, t, after)
	defer func() {
		cancel()
		for range reader { // until it has ended
		}
	}()
	frames := reader
	if t.ended {
		quiet = g.pace.closed
	}
	silence := time.NewTimer(quiet)
	defer silence.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case e, ok := <-frames:
			if !ok { // the stream is gone; the plan can still be read
				frames = nil
				continue
			}
			if e.Kind == bus.FrameDone {
				g.turns.forget(t.plan)
			}
			if !fn(e) || e.Kind == bus.FrameDone {
				return nil, nil
			}
		case <-silence.C:
			view, err := g.viewPlan(ctx, t.actor, t.plan)
			switch {
			case err != nil && ctx.Err() != nil:
				return nil, ctx.Err()
			case err != nil:
				g.cfg.Log.WarnContext(ctx, "ask for a plan", slog.String("plan_id", t.plan), slog.String("trace_id", t.trace), slog.String("error", err.Error()))
			case view.Status.Ended():
				g.turns.forget(t.plan)
				return &view, nil
			}
			if !fn(event{}) {
				return nil, nil
			}
		}
		silence.Reset(g.pace.quiet)
	}
}

// frames reads a turn's frames into a channel, which is closed when ctx has
// ended or the stream cannot be read.
func (g *Gateway) frames(ctx context.Context, t turn, after uint64) <-chan event {
	out := make(chan event)
	go func() {
		defer close(out)
		err := g.cfg.Frames.Frames(ctx, bus.Turn(t.tenant, t.id), after, func(f bus.Frame) bool {
			e := event{Seq: f.Seq}
			if json.Unmarshal(f.Data, &e) != nil || e.Kind == "" {
				return true // not a frame: nothing to show
			}
			e.Seq = f.Seq
			select {
			case out <- e:
				return true
			case <-ctx.Done():
				return false
			}
		})
		if err != nil && ctx.Err() == nil {
			g.cfg.Log.WarnContext(ctx, "read frames", slog.String("plan_id", t.plan), slog.String("trace_id", t.trace), slog.String("error", err.Error()))
		}
	}()
	return out
}

// closing returns the events that end a stream whose own last frames are gone.
func closing(v catalog.PlanView) []event {
	last := newEvent(bus.FrameAnswer, bus.AnswerData{Response: v.Response, Components: v.Components})
	if v.Status == catalog.PlanFailed {
		last = newEvent(bus.FrameError, failure(v))
	}
	return []event{last, newEvent(bus.FrameDone, bus.DoneData{PlanID: v.PlanID, Status: string(v.Status), WorkflowComplete: v.WorkflowComplete})}
}

// failure explains why a plan has failed.
func failure(v catalog.PlanView) bus.ErrorData {
	if v.Failure == nil {
		return bus.ErrorData{Reason: "the plan has failed"}
	}
	raw, _ := json.Marshal(v.Failure) // plain data
	return bus.ErrorData{Reason: v.Failure.Reason, Failure: raw}
}
