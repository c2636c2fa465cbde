package state

import (
	"time"

	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/state/workflows"
)

// nodeSkip skips a node of a run that no edge leads to.
var nodeSkip = newTransition(typeNodeSkip,
	func(v *View, o Intent, a catalog.NodeSkip) (Effect, error) {
		p, err := v.planOfEpoch(o, a.PlanID, a.Epoch)
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
		return Effect{after.answer(), p.writes(false)}, nil
	},
	func(s *State, o Intent, a catalog.NodeSkip) error {
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
