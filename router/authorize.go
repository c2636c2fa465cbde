package router

import (
	"context"
	"sync"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/policies"
	"aob.dev/writ/state"
)

// authorize is stage 7: policy, which can only narrow. Default deny; deny beats
// hold beats allow; an engine that cannot answer denies.
func (r *Router) authorize(ctx context.Context, o *order) error {
	if o.duplicate != nil {
		return nil // judged when it was accepted
	}
	if o.pin != nil {
		o.facts.Skill = new(o.pin.Fact())
	} else if s := o.env.StringArg("skill"); s != "" && o.row.Executor == "skills" {
		o.facts.Skill = &intents.FactSkill{Name: s}
	}
	if err := r.look(ctx, o); err != nil {
		return err
	}
	res, _, err := o.policy.Judge(ctx, o.question())
	if err != nil {
		return err
	}
	if o.onlyDecided() {
		return dryRun(res)
	}
	if x := res.Refusal(); x != nil {
		o.decision.Approvers, o.decision.Hold = res.Approvers(), res.HoldAt(o.now) // nil unless it is held
		return x
	}
	o.decision.Obligations = res.Obligations
	return nil
}

// question is what stage 7 asks about the order.
func (o *order) question() policies.Question {
	tenant := o.env.Principal().Tenant
	q := policies.Question{
		Order: o.env, Facts: o.facts, Rules: o.view.OwnRules(o.task, tenant, o.env.Type(), o.env.Args()), Approval: o.env.Type() == state.TypeApprove, Release: o.released,
	}
	q.Unsettled, q.Hint = o.unsettled()
	if o.view.Rules() >= intents.RulesWorkflows {
		q.CanMeet = func(rule intents.HoldRule) bool {
			so := state.OrderOf(o.env, o.roles, o.now)
			return o.view.CanMeet(tenant, rule, o.view.Asked(&so))
		}
	}
	return q
}

// generation is the policy engine over one state of the directory data.
type generation struct {
	mu     sync.Mutex // guards both
	engine *policies.Engine
	base   *policies.Engine
	data   *state.Directory
}

// engine is the policy in force over the directory data that a decision sees: new data makes
// a new generation, so nothing remembered outlives what it rested on.
func (r *Router) engine(ctx context.Context, v *state.View) (*policies.Engine, error) {
	base, err := r.inForce(ctx)
	if err != nil {
		return nil, err
	}
	data := v.Directory()
	g := &r.generation
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.engine != nil && g.base == base && g.data == data {
		return g.engine, nil
	}
	e, err := base.WithData(ctx, policies.Data(data.PolicyData()))
	if err != nil {
		return nil, err
	}
	if g.data == nil || g.data.At() <= data.At() { // a decision may still be on what was before
		g.engine, g.base, g.data = e, base, data
	}
	return e, nil
}

// Remembered counts the decisions that the policy in force remembered, and
// those that it had to evaluate although it could have remembered them.
func (r *Router) Remembered() (hits, misses int64) {
	g := &r.generation
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.engine == nil {
		return 0, 0
	}
	return g.engine.Remembered()
}

func taskFacts(t state.Task) *intents.FactTask {
	return &intents.FactTask{
		TaskID: t.ID, PlanID: t.Plan, Revision: t.Revision, Step: t.Step, Skills: t.Spec.Skills, Agent: t.Agent,
		Deadline: t.Deadline.UTC().Format(time.RFC3339),
	}
}
