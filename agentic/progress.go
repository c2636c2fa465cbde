package agentic

import (
	"context"
	"encoding/json"
	"slices"

	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/bus"
)

// say tells the manager what the task does.
func (w *worker) say(p progress) {
	if w.req.say != nil {
		w.req.say(p)
	}
}

// following asks a process that says how it comes along.
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

// progress shows what a task says of its step. A task is believed nothing: a skill that is
// not the step's is not named.
func (d *drive) progress(s *catalog.StepView, p progress) {
	if slices.Contains(s.Skills, p.Skill) {
		d.status("calling", p.Skill, s.Step)
	}
}
