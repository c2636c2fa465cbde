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
		after.gaveUp(cancelledBy(o))
		return Effect{after.answer(), p.writesOfEnd()}, nil
	},
	func(s *State, o Intent, a catalog.Cancel) error {
		p, err := s.planOf(o, a.PlanID)
		if err != nil {
			return err
		}
		p.Texts = append(p.Texts, o.Recorded)
		s.failPlan(p, cancelledBy(o), o.At)
		return nil
	}).retainsAllBut("reason").restores(restoreCancel)

// cancelledBy is the reason of the plan's failure.
func cancelledBy(o Intent) string { return "cancelled by " + o.User }

// restoreCancel puts back what the intent says of why.
func restoreCancel(p *catalog.PlanView, o Intent) error {
	a, err := ArgsOf[catalog.Cancel](o)
	if a.Reason != "" && p.Failure != nil {
		f := *p.Failure // the original is shared
		f.Reason = cancelledBy(o) + ": " + a.Reason
		p.Failure = &f
	}
	return err
}
