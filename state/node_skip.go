package state

import (
	"time"

	"aob.dev/writ/agentic/workflows"
	"aob.dev/writ/intents/catalog"
)

// nodeSkip skips a node of a run that no edge leads to.
var nodeSkip = move(typeNodeSkip,
	func(v *View, o Order, a catalog.NodeSkip) (Effect, error) {
		p, err := v.drivenPlan(o, a.PlanID, a.Epoch)
		if err != nil {
			return Effect{}, err
		}
		s := p.step(a.Step)
		switch {
		case p.View.Status != catalog.PlanExecuting:
			return Effect{}, illegal("/intent/args/plan_id", "the plan is "+string(p.View.Status))
		case s == nil || s.Status != catalog.StepPending:
			return Effect{}, illegal("/intent/args/step", "not a pending node of the run")
		}
		if err := v.comesTo(o, p, s, workflows.Skip); err != nil {
			return Effect{}, err
		}
		after := p.clone()
		after.skip(a.Step, o.At)
		return Effect{after.answer(), p.touches(false)}, nil
	},
	func(s *State, o Order, a catalog.NodeSkip) error {
		p, err := s.planOf(o, a.PlanID)
		if err == nil {
			p.skip(a.Step, o.At)
			p.decidedEdges(a.Step, o.Edges)
		}
		return err
	})

func (p *plan) skip(step int, at time.Time) {
	if s := p.step(step); s != nil {
		s.Status, s.FinishedAt = catalog.StepSkipped, &at
	}
}
