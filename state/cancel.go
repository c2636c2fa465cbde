package state

import "aob.dev/writ/intents/catalog"

// cancel ends a plan on behalf of its user, its driver or an operator.
var cancel = newTransition(TypeCancel,
	func(v *View, o Intent, a catalog.Cancel) (Effect, error) {
		p, err := v.ownPlan(o, a.PlanID)
		if err != nil {
			return Effect{}, err
		}
		if err := mayAdvance(o, p); err != nil {
			return Effect{}, err
		}
		if p.View.Status.Ended() {
			return Effect{}, illegal("/intent/args/plan_id", "the plan is "+string(p.View.Status))
		}
		after := p.clone()
		after.end(catalog.PlanFailed, o.At)
		after.gaveUp(cancelled)
		return Effect{after.answer(), p.writesOfEnd()}, nil
	},
	func(s *State, o Intent, a catalog.Cancel) error {
		p, err := s.planOf(o, a.PlanID)
		if err != nil {
			return err
		}
		p.Texts = append(p.Texts, o.Recorded)
		s.failPlan(p, cancelled, o.At)
		return nil
	}).retainsAllBut("reason")

const cancelled = "cancelled" // reason of the plan's failure
