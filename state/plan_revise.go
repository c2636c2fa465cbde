package state

import (
	"fmt"
	"maps"
	"slices"

	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/schemas"
)

// planRevise gives a plan its steps, or new ones in the place of those that are not done.
var planRevise = move(TypePlan,
	func(v *View, o Order, a catalog.Plan) (Effect, error) {
		p, err := v.drivenPlan(o, a.PlanID, a.Epoch)
		switch {
		case err != nil:
			return Effect{}, err
		case p.View.Agent != "":
			return Effect{}, illegal("/intent/args/plan_id", "the plan is the agent "+p.View.Agent+"'s: nobody plans it")
		case p.Exhausted:
			return Effect{}, illegal("/intent/args/revision", "max replan attempts reached: the plan can only be closed as failed")
		case p.View.Status != catalog.PlanPlanning && p.View.Status != catalog.PlanReplanning:
			return Effect{}, illegal("/intent/args/plan_id", "the plan is "+string(p.View.Status)+", a revision is legal while planning or replanning")
		case a.Revision != p.View.Revision+1:
			return Effect{}, illegal("/intent/args/revision", "revision must be the plan's revision plus one")
		}
		if err := legalAnswer(a); err != nil {
			return Effect{}, err
		}
		if err := legalSteps(a.Steps, p.lastDone()); err != nil {
			return Effect{}, err
		}
		after := p.clone()
		after.revise(a, o.Decision.IntentID)
		return Effect{after.answer(), p.touches(true)}, nil
	},
	func(s *State, o Order, a catalog.Plan) error {
		p, err := s.planOf(o, a.PlanID)
		if err != nil {
			return err
		}
		p.revise(a, o.Decision.IntentID)
		p.Texts = append(p.Texts, o.Recorded)
		return nil
	}).keepsAllBut("answer", "steps/task", "steps/return_spec/reason")

// revise is the effect of a revision on a plan; digest is the intent_id of its order.
func (p *plan) revise(a catalog.Plan, digest string) {
	done := p.lastDone()
	kept := slices.DeleteFunc(slices.Clone(p.View.Steps), func(s catalog.StepView) bool { return s.Step > done })
	maps.DeleteFunc(p.Results, func(step int, _ []string) bool { return step > done })
	for _, step := range a.Steps {
		kept = append(kept, catalog.StepView{PlanStep: step, Status: catalog.StepPending, Revision: a.Revision})
	}
	p.View.Steps, p.View.Revision, p.View.PlanDigest = kept, a.Revision, digest
	p.View.Status, p.View.Response = catalog.PlanExecuting, a.Answer
	p.View.Usage = catalog.AddUsage(p.View.Usage, a.Usage...)
}

// legalAnswer: only the first revision may have no steps, and then it has the answer.
func legalAnswer(a catalog.Plan) error {
	switch {
	case len(a.Steps) > 0 && a.Answer != "":
		return illegal("/intent/args/answer", "a plan with steps is answered when it is closed")
	case len(a.Steps) == 0 && a.Revision > 1:
		return illegal("/intent/args/steps", "a revision has at least one step")
	case len(a.Steps) == 0 && a.Answer == "":
		return illegal("/intent/args/answer", "a plan without steps has an answer")
	}
	return nil
}

// legalSteps: numbers run on from the last done step, at most ten in all, input
// only from earlier steps, shapes that compile.
func legalSteps(steps []catalog.PlanStep, done int) error {
	if done+len(steps) > catalog.MaxSteps {
		return illegal("/intent/args/steps", fmt.Sprintf("a plan has at most %d steps: say infeasible instead", catalog.MaxSteps))
	}
	for i, s := range steps {
		at := fmt.Sprintf("/intent/args/steps/%d", i)
		if s.Step != done+i+1 {
			return illegal(at+"/step", "step numbers run on from the last done step")
		}
		if s.InputFromStep < 0 || s.InputFromStep >= s.Step {
			return illegal(at+"/input_from_step", "input can only come from an earlier step")
		}
		if _, err := schemas.CompileShape(s.ReturnSpec.Shape); err != nil {
			return illegal(at+"/return_spec/shape", "shape: "+err.Error())
		}
	}
	return nil
}
