package agentic

import (
	"context"
	"encoding/json"
	"slices"

	"aob.dev/writ/agentic/model"
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
// not the step's is not named, only the agent of a plan speaks to the user, and what it
// says is guarded here. A skill whose calls have a status is not named.
func (d *drive) progress(s *catalog.StepView, p progress) {
	switch {
	case p.Agent != "" && p.Event == "": // a status is one of the plan's agent, whoever works for it
		d.hear(p)
	case p.Text != nil && d.agent.Agent != "":
		d.saying.take(model.Event{Text: p.Text.Text, Reset: p.Text.Reset})
		d.saying.flush(false) // the task has gathered it
	case p.Event != "":
		d.event(p.Event, s.Step)
	case p.Action != nil:
		d.action(*p.Action)
	case slices.Contains(s.Skills, p.Skill) && d.def.StatusOf(p.Skill) == "":
		d.status("calling", p.Skill, s.Step)
	}
}

// hear shows what an agent says that was asked: guarded, and as no part of the answer.
func (d *drive) hear(p progress) {
	if !slices.ContainsFunc(d.agent.Others, func(o catalog.OtherAgent) bool { return o.Agent == p.Agent }) {
		return
	}
	t := d.heard[p.Ask]
	if t == nil {
		t = &tokens{now: d.cfg.Now, show: func(data bus.ContentData) {
			data.Agent = p.Agent
			d.frame(bus.FrameChildContent, data)
		}}
		d.heard[p.Ask] = t
		d.status("asking", p.Agent, 0)
	}
	if p.Text != nil {
		t.take(model.Event{Text: p.Text.Text, Reset: p.Text.Reset})
	}
	t.flush(p.Over)
	if p.Over {
		delete(d.heard, p.Ask)
	}
}
