package router

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/policies"
)

// authorize is stage 7: policy, which can only narrow. Default deny; deny beats
// hold beats allow; an engine that cannot answer denies.
func (r *Router) authorize(ctx context.Context, o *order) error {
	if o.duplicate != nil {
		return nil // judged when it was accepted
	}
	if o.pin != nil {
		o.facts.Skill = &policies.Skill{Name: o.pin.Skill, Digest: o.pin.Digest, Effect: o.pin.Effect}
	} else if s := o.env.StringArg("skill"); s != "" && o.row.Executor == "skills" {
		o.facts.Skill = &policies.Skill{Name: s}
	}
	res, err := o.policy.DecideOrder(ctx, o.env, o.facts)
	if err != nil {
		return err
	}
	if o.env.Type() == typeApprove {
		res = res.Unheld()
	}
	if res.Outlasts(o.env.TTL()) {
		return intents.Refuse(intents.PolicyDenied, "/constraints/ttl_sec", "the order asks for a longer ttl_sec than a policy allows")
	}
	if x := res.Refusal(); x != nil {
		holdFor(&o.decision, res, o.now)
		return x
	}
	o.decision.Obligations = res.Obligations
	return nil
}

// generation is the policy engine over one state of the directory data.
type generation struct {
	mu     sync.Mutex // guards both
	engine *policies.Engine
	base   *policies.Engine
	data   int64
}

// engine is the policy in force over the directory data of now: new data makes
// a new generation, so nothing remembered outlives what it rested on.
func (r *Router) engine(ctx context.Context) (*policies.Engine, error) {
	base, err := r.inForce(ctx)
	if err != nil {
		return nil, err
	}
	at := r.dir.dataVersion()
	g := &r.generation
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.engine != nil && g.base == base && g.data == at {
		return g.engine, nil
	}
	data, at := r.dir.policyData()
	e, err := base.WithData(ctx, data)
	if err != nil {
		return nil, err
	}
	g.engine, g.base, g.data = e, base, at
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

// policyData is the directory as policies see it, and its version.
func (d *Directory) policyData() (policies.Data, int64) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	out := policies.Data{
		Tenants: map[string]map[string]json.RawMessage{}, Roles: map[string][]string{},
		Pins: map[string]map[string]policies.Skill{}, Approvers: map[string][]string{},
	}
	for id, t := range d.tenants {
		out.Tenants[id] = map[string]json.RawMessage{}
		for k, v := range t.data {
			out.Tenants[id][k] = v
		}
		out.Pins[id] = map[string]policies.Skill{}
		for name, p := range t.pins {
			out.Pins[id][name] = policies.Skill{Name: name, Digest: p.Digest, Effect: p.Effect}
		}
		if approvers := t.approvers(); len(approvers) > 0 {
			out.Approvers[id] = approvers
		}
	}
	return out, d.dataVersionLocked()
}

func (d *Directory) dataVersion() int64 {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.dataVersionLocked()
}

// dataVersionLocked is the last position that touched directory data.
func (d *Directory) dataVersionLocked() int64 { return d.dataAt }

func taskFacts(t Task) *policies.Task {
	return &policies.Task{
		TaskID: t.ID, PlanID: t.Plan, Revision: t.Revision, Step: t.Step, Skills: t.Spec.Skills,
		Deadline: t.Deadline.UTC().Format(time.RFC3339),
	}
}

// planSeen is what a policy sees of a plan, and whose plan it is. The decision
// rests on it.
func (v *View) planSeen(tenant, id string) (facts *policies.Plan, user string, ok bool) {
	v.d.mu.RLock()
	defer v.d.mu.RUnlock()
	v.rely(subjectPlan(tenant, id))
	p, ok := v.d.plans[tenant+"/"+id]
	if !ok {
		return nil, "", false
	}
	return &policies.Plan{
		PlanID: p.view.PlanID, Status: string(p.view.Status), Epoch: p.view.Epoch, Revision: p.view.Revision,
		ReplanCount: p.view.ReplanCount, Steps: len(p.view.Steps),
	}, p.view.UserID, true
}
