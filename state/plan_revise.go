package state

import (
	"fmt"
	"maps"
	"slices"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/schemas"
)

// planRevise gives a plan its steps, or replaces those that do not stay.
var planRevise = newTransition(TypePlan,
	func(v *View, o Intent, a catalog.Plan) (Effect, error) {
		p, err := v.planOfEpoch(o, a.PlanID, a.Epoch)
		switch {
		case err != nil:
			return Effect{}, err
		case p.View.Run != nil:
			return Effect{}, illegal("/intent/args/plan_id", "the plan is a run of the workflow "+p.View.Run.WorkflowID+": nobody plans it")
		case p.View.Agent != "":
			return Effect{}, illegal("/intent/args/plan_id", "the plan is the agent "+p.View.Agent+"'s: nobody plans it")
		case (a.Route != nil) != (o.Signer == intents.RoleManager):
			return Effect{}, intents.Refuse(intents.KeyRole, "/sig", "planners sign plans, and managers those that are routed")
		case p.Routing != nil || a.Route != nil:
			return v.judgeRoute(o, p, a)
		case p.Exhausted:
			return Effect{}, illegal("/intent/args/revision", "max replan attempts reached: the plan can only be closed as failed")
		case p.View.Status != catalog.PlanPlanning && p.View.Status != catalog.PlanReplanning:
			return Effect{}, illegal("/intent/args/plan_id", "the plan is "+string(p.View.Status)+", a revision is legal while planning or replanning")
		case a.Revision != p.View.Revision+1:
			return Effect{}, illegal("/intent/args/revision", "revision must be the plan's revision plus one")
		}
		if err := legalAnswer(o, a); err != nil {
			return Effect{}, err
		}
		if len(p.liveTasks()) > 0 {
			return Effect{}, illegal("/intent/args/plan_id", "a task of the plan lives: its step ends first")
		}
		if slices.ContainsFunc(a.Drop, func(n int) bool { s := p.step(n); return s == nil || !s.Retained() || s.Status == catalog.StepDone }) {
			return Effect{}, illegal("/intent/args/drop", "only a step can be dropped that has begun, does not run and is not done")
		}
		if err := legalSteps(a.Steps, p.retainedSteps(a.Drop), p.nextNumber()); err != nil {
			return Effect{}, err
		}
		steps, ofStep, err := v.s.agentSteps(p, a.Steps)
		if err != nil {
			return Effect{}, err
		}
		if len(ofStep) > 0 {
			v.addRead(SubjectRegistry)
			v.addRead(SubjectTenant(o.Tenant))
		}
		after := p.clone()
		a.Steps = steps
		after.revise(a, o.Decision.IntentID)
		return Effect{after.answer(), p.writes(true)}, nil
	},
	func(s *State, o Intent, a catalog.Plan) error {
		p, err := s.planOf(o, a.PlanID)
		if err != nil {
			return err
		}
		if p.Routing != nil {
			return s.applyRoute(p, o, a)
		}
		steps, ofStep, err := s.agentSteps(p, a.Steps)
		if err != nil {
			return err
		}
		a.Steps = steps
		p.revise(a, o.Decision.IntentID)
		if p.Agents == nil {
			p.Agents = make(map[int]*runs)
		}
		maps.Copy(p.Agents, ofStep)
		s.spend(p, catalog.Tokens(a.Usage), o.At)
		p.AnswerErased = o.Erased
		p.Texts = append(p.Texts, o.Recorded)
		return nil
	}).retainsAllBut("answer", "steps/task", "steps/return_spec/reason", "route/intent_summary", "route/entities").restores(restoreRevision)

// restoreRevision puts back the answer, the route and the tasks of the steps.
func restoreRevision(p *catalog.PlanView, o Intent) error {
	a, err := ArgsOf[catalog.Plan](o)
	p.Response = a.Answer
	if a.Route != nil {
		p.Route = p.Route.WithTexts(*a.Route)
	}
	for _, from := range a.Steps {
		for i := range p.Steps {
			if at := &p.Steps[i]; at.Step == from.Step && at.Revision == a.Revision {
				at.Task = from.Task
			}
		}
	}
	return err
}

// revise applies a revision to a plan; digest is the intent_id of its intent.
func (p *plan) revise(a catalog.Plan, digest string) {
	kept := p.retainedSteps(a.Drop)
	maps.DeleteFunc(p.Results, func(n int, _ []string) bool {
		return !slices.ContainsFunc(kept, func(s catalog.StepView) bool { return s.Step == n })
	})
	for _, step := range a.Steps {
		kept = append(kept, catalog.StepView{PlanStep: step, Status: catalog.StepPending, Revision: a.Revision})
	}
	p.View.Steps, p.View.Revision, p.View.PlanDigest = kept, a.Revision, digest
	p.View.Status, p.View.Response = catalog.PlanExecuting, a.Answer
	p.View.Usage = catalog.AddUsage(p.View.Usage, a.Usage...)
}

// legalAnswer checks that only the first revision has no steps, and that it then has the answer.
func legalAnswer(o Intent, a catalog.Plan) error {
	answered := o.TextSize("answer") > 0
	switch {
	case len(a.Steps) > 0 && answered:
		return illegal("/intent/args/answer", "a plan with steps is answered when it is closed")
	case len(a.Steps) == 0 && a.Revision > 1:
		return illegal("/intent/args/steps", "a revision has at least one step")
	case len(a.Steps) == 0 && !answered:
		return illegal("/intent/args/answer", "a plan without steps has an answer")
	}
	return nil
}

// retainedSteps are the steps that a revision leaves unchanged.
func (p *plan) retainedSteps(drop []int) []catalog.StepView {
	return slices.DeleteFunc(slices.Clone(p.View.Steps), func(s catalog.StepView) bool { return !s.Retained() || slices.Contains(drop, s.Step) })
}

// nextNumber is the number of the first step of a revision. Numbers of earlier revisions are
// never reused.
func (p *plan) nextNumber() int {
	if n := len(p.View.Steps); n > 0 {
		return p.View.Steps[n-1].Step + 1
	}
	return 1
}

// legalSteps checks that numbers are consecutive, that there are at most ten steps in all, that
// each names only earlier steps of the plan, and that shapes compile.
func legalSteps(steps []catalog.PlanStep, stay []catalog.StepView, first int) error {
	if len(stay)+len(steps) > catalog.MaxSteps {
		return illegal("/intent/args/steps", fmt.Sprintf("a plan has at most %d steps: say infeasible instead", catalog.MaxSteps))
	}
	before := map[int]bool{}
	for _, s := range stay {
		before[s.Step] = true
	}
	for i, s := range steps {
		at := fmt.Sprintf("/intent/args/steps/%d", i)
		if s.Step != first+i {
			return illegal(at+"/step", fmt.Sprintf("step numbers run on from %d", first))
		}
		switch notBefore := func(n int) bool { return !before[n] }; {
		case s.InputFromStep != 0 && notBefore(s.InputFromStep):
			return illegal(at+"/input_from_step", "input can only come from an earlier step")
		case slices.ContainsFunc(s.Inputs, notBefore):
			return illegal(at+"/inputs", "input can only come from an earlier step")
		case slices.ContainsFunc(s.After, notBefore):
			return illegal(at+"/after", "a step can only wait for an earlier step")
		}
		if _, err := schemas.CompileShape(s.ReturnSpec.Shape); err != nil {
			return illegal(at+"/return_spec/shape", "shape: "+err.Error())
		}
		before[s.Step] = true
	}
	return nil
}
