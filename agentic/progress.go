package agentic

import (
	"slices"

	"aob.dev/writ/intents/catalog"
)

// say tells the manager what the task does.
func (w *worker) say(p progress) {
	if w.req.say != nil {
		w.req.say(p)
	}
}

// progress shows what a task says of its step. A task is believed nothing: a skill that is
// not the step's is not named.
func (d *drive) progress(s *catalog.StepView, p progress) {
	if slices.Contains(s.Skills, p.Skill) {
		d.status("calling", p.Skill, s.Step)
	}
}
