package state

import "aob.dev/writ/intents/catalog"

// cancel ends a plan for its user, its driver or an operator.
var cancel = move(TypeCancel,
	func(v *View, o Order, a catalog.Cancel) (Effect, error) {
		p, err := v.ownPlan(o, a.PlanID)
		if err != nil {
			return Effect{}, err
		}
		if err := drives(o, p); err != nil {
			return Effect{}, err
		}
		if final(p.View.Status) {
			return Effect{}, illegal("/intent/args/plan_id", "the plan is "+string(p.View.Status))
		}
		after := p.clone()
		after.end(catalog.PlanFailed, o.At)
		after.gaveUp(cancelled)
		return Effect{after.answer(), p.touchesEnd()}, nil
	},
	func(s *State, o Order, a catalog.Cancel) error {
		p, err := s.planOf(o, a.PlanID)
		if err != nil {
			return err
		}
		p.Texts = append(p.Texts, o.Recorded)
		s.failPlan(p, cancelled, o.At)
		return nil
	}).keepsAllBut("reason")

const cancelled = "cancelled" // why the plan has failed
