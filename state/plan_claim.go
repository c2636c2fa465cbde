package state

import (
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

// planClaim makes its signer the driver of a plan, in the place of any other.
var planClaim = move("plan.claim",
	func(v *View, o Order, a catalog.PlanClaim) (Effect, error) {
		p, err := v.ownPlan(o, a.PlanID)
		switch {
		case err != nil:
			return Effect{}, err
		case drives(o, p) != nil:
			return Effect{}, drives(o, p)
		case final(p.View.Status):
			return Effect{}, illegal("/intent/args/plan_id", "the plan is "+string(p.View.Status))
		case a.Epoch != p.View.Epoch+1:
			return Effect{}, illegal("/intent/args/epoch", "epoch must be the plan's epoch plus one: another driver has claimed it")
		}
		after := p.clone()
		after.claim(a.Epoch, v.s.rules, o.At)
		told := after.shown()
		told.Run = withoutEdges(told.Run)
		told.Turn, told.Agents, told.ByAgent = p.Turn, p.Registry != nil, p.ByAgent
		if p.Gate != nil && told.Status == catalog.PlanPlanning {
			told.Gate = &catalog.Gated{Clarify: p.Gate.Clarify && p.Before == nil, Before: p.Before}
		}
		return Effect{told, p.touchesTasks()}, nil
	},
	func(s *State, o Order, a catalog.PlanClaim) error {
		p, err := s.planOf(o, a.PlanID)
		if err != nil {
			return err
		}
		for _, t := range p.liveTasks() {
			s.endTask(t, "a newer plan.claim", "", nil, o.At)
		}
		p.claim(a.Epoch, s.rules, o.At)
		p.Claimed, p.Unheld = o.Position, false
		return nil
	})

// claim is the effect of plan.claim on a plan: steps that run or whose orders on hold have
// ended go on, with a new task that is told what the calls before did. Under earlier
// rules a step began anew, and where an order with an effect may have happened the
// plan replanned.
func (p *plan) claim(epoch int, rules intents.Rules, at time.Time) {
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
			if rules < intents.RulesAgents && p.effects(s.Step) {
				s.Status = catalog.StepInterrupted
				s.FailureReason = "interrupted after an order with an effect"
				p.replan(s, "interrupted", s.FailureReason, at)
			} else {
				s.Status = catalog.StepPending
			}
		case catalog.StepHeld:
			if !p.waiting(s.Step) {
				s.Status = catalog.StepPending
			}
		default:
		}
	}
}
