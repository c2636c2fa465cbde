package router

import (
	"context"
	"sync"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/policies"
	"aob.dev/writ/state"
)

// authorize is stage 7: policy, which can only narrow. Default deny; deny beats hold beats allow;
// an engine that cannot answer denies.
func (r *Router) authorize(ctx context.Context, d *decision) error {
	if d.duplicate != nil {
		return nil // judged when it was accepted
	}
	if d.pin != nil {
		d.inputs.Skill = new(d.pin.Input())
	} else if s := d.env.StringArg("skill"); s != "" && d.row.Executor == "skills" {
		d.inputs.Skill = &intents.SkillInput{Name: s}
	}
	if err := r.look(ctx, d); err != nil {
		return err
	}
	res, _, err := d.policy.Judge(ctx, d.question())
	if err != nil {
		return err
	}
	if d.onlyDecided() {
		return dryRun(res)
	}
	if x := res.Refusal(); x != nil {
		d.Approvers, d.Hold = res.Approvers(), res.HoldAt(d.now) // nil unless it is held
		return x
	}
	d.Obligations = res.Obligations
	return nil
}

// question is what stage 7 asks about the intent. The view's directory is a read of the decision:
// see decide.
func (d *decision) question() intents.Question {
	w := intents.Waiting{Requesters: func() intents.Requesters {
		so := d.intent()
		return d.view.Requesters(&so)
	}}
	if d.release != nil {
		w.Release, w.Requesters = true, func() intents.Requesters { return d.release.requesters }
	}
	w.UnknownOutcome, w.Hint = d.unknownOutcome()
	return d.view.Directory().Question(d.env, d.inputs, d.task, w)
}

// generation is the policy engine over one state of the directory data.
type generation struct {
	mu     sync.Mutex // guards both
	engine *policies.Engine
	base   *policies.Engine
	data   *state.Directory
}

// engine is the policy in force over the directory data that a decision sees. New data makes a new
// generation, so no memo outlives the data behind it.
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
	e, err := base.WithData(ctx, data.PolicyData())
	if err != nil {
		return nil, err
	}
	if g.data == nil || g.data.At() <= data.At() { // a decision may still use the earlier data
		g.engine, g.base, g.data = e, base, data
	}
	return e, nil
}

// MemoStats counts the decisions that the policy in force remembered, and those that it had to
// evaluate although it could have remembered them.
func (r *Router) MemoStats() (hits, misses int64) {
	g := &r.generation
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.engine == nil {
		return 0, 0
	}
	return g.engine.MemoStats()
}

func taskInput(t state.Task) *intents.TaskInput {
	return &intents.TaskInput{
		TaskID: t.ID, PlanID: t.Plan, Revision: t.Revision, Step: t.Step, Skills: t.Spec.Skills, Agent: t.Agent,
		Deadline: t.Deadline.UTC().Format(time.RFC3339),
	}
}
