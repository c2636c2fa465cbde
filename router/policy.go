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
	if d.row.Vendor() {
		d.inputs.Effect = string(d.row.Effect)
	}
	if err := r.look(ctx, d); err != nil {
		return err
	}
	if d.inputs.Task != nil {
		d.inputs.Task.Sources = d.sources()
	}
	res, _, err := d.policy.Judge(ctx, d.question())
	if err != nil {
		return err
	}
	if d.onlyDecided() {
		return dryRun(res)
	}
	if res.Verdict() == intents.Hold {
		if res, err = d.withStanding(ctx, res); err != nil {
			return err
		}
	}
	if x := res.Refusal(); x != nil {
		d.Approvers, d.Hold = res.Approvers(), res.HoldAt(d.now) // nil unless it is held
		return x
	}
	d.Obligations = res.Obligations
	return nil
}

// withStanding is the result if a standing approval lets a held intent through, or else the given one.
func (d *decision) withStanding(ctx context.Context, held policies.Result) (policies.Result, error) {
	so := d.intent()
	so.Sources = d.decidedSources()
	if d.pin != nil {
		so.Skill = d.pin.Skill
	}
	yes, name, seen := d.view.Standing(&so, "", held.PolicyIDs())
	if name == "" {
		return held, nil
	}
	d.inputs.Standing, d.inputs.Approvals, d.seen = name, []intents.Approval{yes}, seen
	res, _, err := d.policy.Judge(ctx, d.question())
	if err == nil && res.Verdict() == intents.Allow {
		return res, nil
	}
	d.inputs.Standing, d.inputs.Approvals, d.seen = "", nil, nil
	return held, err
}

// question is what stage 7 asks about the intent. The view's directory is a read of the decision:
// see decide.
func (d *decision) question() intents.Question {
	w := intents.Waiting{Seen: d.seen, Requesters: func() intents.Requesters {
		so := d.intent()
		return d.view.Requesters(&so)
	}}
	if d.release != nil {
		w.Release, w.Requesters = true, func() intents.Requesters { return d.release.requesters }
	}
	w.UnknownOutcome, w.Hint = d.unknownOutcome()
	return d.view.Directory().Question(d.env, d.inputs, d.task, w)
}

// engines are the policy in force over the data of each tenant.
type engines struct {
	mu sync.RWMutex // guards of, and nothing that takes long
	of map[string]*tenantEngine
}

// tenantEngine is a policy over the data that a tenant has from a position on.
type tenantEngine struct {
	base   *policies.Engine
	data   state.Tenant
	at     int64
	engine func() (*policies.Engine, error) // the first call converts the data
}

// engine is the policy in force over the data of the tenant that a decision sees. Other data of the
// tenant makes another generation, so no remembered decision outlives the data behind it; a change
// in another tenant makes none.
func (r *Router) engine(ctx context.Context, v *state.View, tenant string) (*policies.Engine, error) {
	base, err := r.inForce(ctx)
	if err != nil {
		return nil, err
	}
	return r.engines.engine(base, v.Directory(), tenant)
}

// engine is a policy over the data of a tenant.
func (g *engines) engine(base *policies.Engine, dir *state.Directory, tenant string) (*policies.Engine, error) {
	data := dir.Tenant(tenant)
	g.mu.RLock()
	e := g.of[tenant]
	g.mu.RUnlock()
	if e == nil || e.base != base || e.data != data {
		e = g.put(tenant, &tenantEngine{base, data, dir.At(), sync.OnceValues(func() (*policies.Engine, error) {
			return base.WithData(data.PolicyData())
		})})
	}
	return e.engine()
}

// put makes an engine the tenant's, and returns it, or an equal one that is the tenant's already. A
// decision may still use earlier data.
func (g *engines) put(tenant string, e *tenantEngine) *tenantEngine {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch is := g.of[tenant]; {
	case is != nil && is.base == e.base && is.data == e.data:
		return is
	case is != nil && is.at > e.at:
		return e
	case g.of == nil:
		g.of = make(map[string]*tenantEngine)
	}
	g.of[tenant] = e
	return e
}

// MemoStats counts the decisions that the policy in force remembered, and those that it had to
// evaluate although it could have remembered them.
func (r *Router) MemoStats() (hits, misses int64) { return r.cfg.Policy.Engine().MemoStats() }

func taskInput(t state.Task) *intents.TaskInput {
	return &intents.TaskInput{
		TaskID: t.ID, PlanID: t.Plan, Revision: t.Revision, Step: t.Step, Skills: t.Spec.Skills, Agent: t.Agent,
		Deadline: t.Deadline.UTC().Format(time.RFC3339),
	}
}
