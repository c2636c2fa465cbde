package audit_test

import (
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
)

// graphMisdeeds break the rules of steps that run side by side.
var graphMisdeeds = []misdeed{
	{"step-too-early", "side-by-side", "step: all that the step waits for is done", "waits for", func(d *dishonest) int64 {
		return d.accepted(d.step(6, nil))
	}},
	{"fifth-task", "side-by-side", "step: at most four tasks of a plan live", "4 tasks", func(d *dishonest) int64 {
		return d.accepted(d.step(5, nil))
	}},
	{"step-beside-a-failure", "failed-beside", "step: the plan is executing", "replanning", func(d *dishonest) int64 {
		return d.accepted(d.step(3, nil))
	}},
	{"revision-while-a-task-lives", "failed-beside", "plan: no task of the plan lives", "a task of the plan lives", func(d *dishonest) int64 {
		return d.accepted(d.revision(2, routertest.Steps(5, "feed")))
	}},
	{"steps-numbered-again", "failed-beside", "plan: step numbers run on", "step numbers", func(d *dishonest) int64 {
		d.secondFails()
		return d.accepted(d.revision(2, routertest.Steps(1, "feed")))
	}},
	{"input-of-replaced-step", "failed-beside", "plan: input comes from an earlier step", "earlier step", func(d *dishonest) int64 {
		d.secondFails()
		return d.accepted(d.revision(2, d.second(func(s *catalog.PlanStep) { s.Inputs = []int{2} })))
	}},
	{"after-later-step", "failed-beside", "plan: a step waits for earlier steps", "earlier step", func(d *dishonest) int64 {
		d.secondFails()
		return d.accepted(d.revision(2, d.second(func(s *catalog.PlanStep) { s.After = []int{6} })))
	}},
}

// second is one step for a revision of that scene, changed.
func (d *dishonest) second(change func(*catalog.PlanStep)) []catalog.PlanStep {
	steps := routertest.Steps(5, "feed")
	change(&steps[0])
	return steps
}
