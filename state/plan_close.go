package state

import (
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/storage"
)

// planClose closes a plan with its answer or failure.
var planClose = newTransition(TypePlanClose,
	func(v *View, o Intent, a catalog.PlanClose) (Effect, error) {
		p, err := v.planOfEpoch(o, a.PlanID, a.Epoch)
		if err != nil {
			return Effect{}, err
		}
		if status := catalog.PlanStatus(a.Status); status == catalog.PlanComplete {
			err = p.completable(a.Response, o.Erased)
		} else if status == catalog.PlanNeedsInput {
			err = p.mayAskUser()
		}
		if err != nil {
			return Effect{}, err
		}
		after := p.clone()
		after.closing(a)
		after.end(catalog.PlanStatus(a.Status), o.At)
		return Effect{after.answer(), p.writesOfEnd()}, nil
	},
	func(s *State, o Intent, a catalog.PlanClose) error {
		p, err := s.planOf(o, a.PlanID)
		if err != nil {
			return err
		}
		p.closing(a)
		s.spend(p, catalog.Tokens(a.Usage), o.At)
		p.Texts = append(p.Texts, o.Recorded)
		s.endPlan(p, catalog.PlanStatus(a.Status), o.At)
		return nil
	}).retainsAllBut("response", "failure/reason", "failure/last_failure/reason").restores(restoreAnswer)

// restoreAnswer puts the answer back.
func restoreAnswer(p *catalog.PlanView, o Intent) error {
	a, err := ArgsOf[catalog.PlanClose](o)
	p.Response = a.Response
	return err
}

// closing applies the answer or the failure of a plan.
func (p *plan) closing(a catalog.PlanClose) {
	p.View.Response, p.View.Failure = a.Response, a.Failure
	p.View.Usage = catalog.AddUsage(p.View.Usage, a.Usage...)
	if f := a.Failure; f != nil && f.Reason == "" { // the intent was erased
		f.Reason = storage.ErasedReason
	}
}

// mayAskUser reports whether a plan may end with a question to its user.
func (p *plan) mayAskUser() error {
	if p.Run != nil || p.View.Agent != "" {
		return illegal("/intent/args/status", "only a planner's plan ends with a question to its user")
	}
	return nil
}

// completable reports whether a plan may be closed as complete with a response, which is unknown
// if it was erased.
func (p *plan) completable(response string, erased bool) error {
	steps := p.View.Steps
	known := !erased && !p.AnswerErased
	if p.Run != nil {
		if !p.nodesEnded() {
			return illegal("/intent/args/status", "a run is complete when each node is done, skipped, or has failed with a conditional edge to go on with")
		}
		return nil
	}
	switch {
	case p.View.Status != catalog.PlanExecuting || len(p.doneSteps()) < len(steps):
		return illegal("/intent/args/status", "a plan is complete when all its steps are done")
	case len(steps) == 0 && known && response != p.View.Response:
		return illegal("/intent/args/response", "a plan without steps is closed with the answer that its planner gave")
	case p.View.Agent != "" && known && response != p.View.Response:
		return illegal("/intent/args/response", "the plan of an agent is closed with the agent's reply")
	}
	return nil
}
