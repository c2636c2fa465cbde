package agentic

import (
	"context"
	"encoding/json"
	"slices"

	"aob.dev/writ/bus"
	"aob.dev/writ/intents/catalog"
)

// say reports progress of the task to the manager.
func (w *worker) say(p progress) {
	if w.req.say != nil {
		w.req.say(p)
	}
}

// following sends a request to a process that reports its progress.
func following(conn bus.Conn, on func(progress)) func(context.Context, string, []byte) ([]byte, error) {
	return func(ctx context.Context, subject string, msg []byte) ([]byte, error) {
		return conn.Follow(ctx, subject, msg, func(said []byte) {
			var p progress
			if json.Unmarshal(said, &p) == nil {
				on(p)
			}
		})
	}
}

// show displays a task's progress in its step. A task is not trusted: a skill that is not the
// step's is not named.
func (r *Run) show(s *catalog.StepView, p progress) {
	switch {
	case p.Request != nil:
		r.showRequest(p.Request)
	case p.Event != "":
		r.event(nil, p.Event, s.Step)
	case slices.Contains(s.Skills, p.Skill):
		r.status("calling", p.Skill, s.Step)
	}
}

// maxShownRequest bounds a displayed request, in bytes: a frame must fit into a message.
const maxShownRequest = 1 << 20

// showRequest displays a request to a model.
func (r *Run) showRequest(body []byte) {
	if len(body) <= maxShownRequest && json.Valid(body) {
		r.frame(bus.FrameRequest, json.RawMessage(body))
	}
}
