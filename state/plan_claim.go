package state

import (
	"aob.dev/writ/intents/catalog"
)

// planClaim makes its signer the driver of a plan, in place of any other.
var planClaim = newTransition("plan.claim",
	func(v *View, o Intent, a catalog.PlanClaim) (Effect, error) {
		p, err := v.ownPlan(o, a.PlanID)
		switch {
		case err != nil:
			return Effect{}, err
		case mayAdvance(o, p) != nil:
			return Effect{}, mayAdvance(o, p)
		case p.View.Status.Ended():
			return Effect{}, illegal("/intent/args/plan_id", "the plan is "+string(p.View.Status))
		case a.Epoch != p.View.Epoch+1:
			return Effect{}, illegal("/intent/args/epoch", "epoch must be the plan's epoch plus one: another driver has claimed it")
		}
		after := p.clone()
		after.claim(a.Epoch)
		told := after.shown()
		told.Run = withoutEdges(told.Run)
		told.Turn, told.Agents, told.ByAgent = p.Turn, p.Registry != nil, p.ByAgent
		if p.Routing != nil && told.Status == catalog.PlanPlanning {
			told.Routing = &catalog.RoutingContext{Clarify: p.Routing.Clarify && p.Before == nil, Before: p.Before}
		}
		return Effect{told, p.writesOfTasks()}, nil
	},
	func(s *State, o Intent, a catalog.PlanClaim) error {
		p, err := s.planOf(o, a.PlanID)
		if err != nil {
			return err
		}
		for _, t := range p.liveTasks() {
			s.endTask(t, "a newer plan.claim", "", nil, o.At)
		}
		p.claim(a.Epoch)
		p.Claimed, p.Unheld = o.Position, false
		return nil
	})

// claim applies plan.claim to a plan: steps that run, or whose holds have ended, continue with a
// new task that receives the results of the earlier calls.
func (p *plan) claim(epoch int) {
	v := &p.View
	v.Epoch = epoch
	if v.Status == catalog.PlanPending {
		v.Status = catalog.PlanPlanning
		if v.Agent != "" || v.Run != nil {
			v.Status = catalog.PlanExecuting
		}
	}
	for i := range v.Steps {
		s := &v.Steps[i]
		switch s.Status {
		case catalog.StepRunning:
			s.Status = catalog.StepPending
		case catalog.StepPendingApproval:
			if !p.waiting(s.Step) {
				s.Status = catalog.StepPending
			}
		default:
		}
	}
}
