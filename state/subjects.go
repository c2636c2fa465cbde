package state

import (
	"fmt"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/storage"
)

// Subjects are the pieces of state that decisions rely on. A commit asserts for each
// that it was touched last where the decision saw it.
//
// A plan is four kinds of them, so that tasks which work side by side do not make
// each other's orders stale: an order of a task relies on the task and on planstate,
// an order that acts once on the effects of its step too, one that asks another agent on
// the asks of its step, and a move of the plan on everything that it reads and answers with.
const (
	SubjectKeys     storage.Subject = "keys"
	SubjectPolicy   storage.Subject = "policy"
	SubjectRegistry storage.Subject = "registry" // the agents of all tenants
)

// SubjectTenant is the directory data of a tenant.
func SubjectTenant(tenant string) storage.Subject { return storage.Subject("dir/" + tenant) }

// SubjectPlan is a plan: its steps and holds.
func SubjectPlan(tenant, plan string) storage.Subject {
	return storage.Subject("plan/" + tenant + "/" + plan)
}

// SubjectPlanState is what every order of a plan sees of it: status, epoch, revision
// and replan count. It changes less often than the plan's steps.
func SubjectPlanState(tenant, plan string) storage.Subject {
	return storage.Subject("planstate/" + tenant + "/" + plan)
}

// SubjectEffects are the orders of a step of a plan that act once or were held, and
// what became of them.
func SubjectEffects(tenant, plan string, step int) storage.Subject {
	return storage.Subject(fmt.Sprintf("effects/%s/%s/%d", tenant, plan, step))
}

// subjectUnknown are those of which nobody knows what became of them.
func subjectUnknown(tenant, plan string, step int) storage.Subject {
	return storage.Subject(fmt.Sprintf("unknown/%s/%s/%d", tenant, plan, step))
}

// subjectNumber is the number of a client's call.
func subjectNumber(tenant, plan string, n int) storage.Subject {
	return storage.Subject(fmt.Sprintf("call/%s/%s/%d", tenant, plan, n))
}

// SubjectAsks are the tasks that the task of a step has asked for.
func SubjectAsks(tenant, plan string, step int) storage.Subject {
	return storage.Subject(fmt.Sprintf("asks/%s/%s/%d", tenant, plan, step))
}

// SubjectTask is a task.
func SubjectTask(tenant, task string) storage.Subject {
	return storage.Subject("task/" + tenant + "/" + task)
}

// SubjectOrder is an order that is held, indeterminate or resolved.
func SubjectOrder(intentID string) storage.Subject { return storage.Subject("order/" + intentID) }

func subjectGrants(tenant, sub string) storage.Subject {
	return storage.Subject("grants/" + tenant + "/" + sub)
}

// subjectTaskKey is touched by the step that introduces a key: no second step may.
func subjectTaskKey(kid string) storage.Subject { return storage.Subject("taskkey/" + kid) }

// wholePlan finds a plan for a move, which relies on all of it that it reads or answers
// with.
func (v *View) wholePlan(tenant, id string) (*plan, bool) {
	p, ok := v.s.plans[tenant+"/"+id]
	if ok {
		v.relyOnPlan(p)
		return p, true
	}
	v.rely(SubjectPlan(tenant, id))
	v.rely(SubjectPlanState(tenant, id))
	return nil, false
}

// relyOnPlan makes a decision rely on a plan: its state, its steps, and the effects
// of steps that are not done. The lock must be held.
func (v *View) relyOnPlan(p *plan) {
	tenant, id := p.View.TenantID, p.View.PlanID
	v.rely(SubjectPlan(tenant, id))
	v.rely(SubjectPlanState(tenant, id))
	if p.View.Run != nil { // its moves answer with nothing of them
		return
	}
	for _, s := range p.View.Steps {
		if s.Status != catalog.StepDone {
			v.rely(SubjectEffects(tenant, id, s.Step))
			if p.Runs != nil {
				v.rely(SubjectAsks(tenant, id, s.Step))
			}
		}
	}
	for _, f := range p.Facts {
		if f.Step > 0 && p.step(f.Step) == nil { // of a step that a revision took away
			v.rely(SubjectEffects(tenant, id, f.Step))
		}
	}
}

// touches are what a move of the plan changes; state: not its steps alone.
func (p *plan) touches(state bool) []storage.Subject {
	out := []storage.Subject{SubjectPlan(p.View.TenantID, p.View.PlanID)}
	if state {
		out = append(out, SubjectPlanState(p.View.TenantID, p.View.PlanID))
	}
	return out
}

// touchesTasks are what a move changes that ends the plan's live tasks.
func (p *plan) touchesTasks() []storage.Subject {
	out := p.touches(true)
	for _, t := range p.liveTasks() {
		out = append(out, SubjectTask(t.Tenant, t.ID))
	}
	return out
}

// touchesEnd are what a move changes that ends the plan.
func (p *plan) touchesEnd() []storage.Subject { return append(p.touchesTasks(), p.turnSubjects()...) }

// Touches are what an order changes that waits for people or is carried out by an
// executor. For an order of the router see Effect.Touches.
func (o *Order) Touches() []storage.Subject {
	c := o.Context
	held := o.Decision.Verdict == intents.Hold
	out := o.BreakerTouches(nil)
	if held && c.Cause != "" { // it may use up an edit
		out = append(out, SubjectOrder(c.Cause))
	}
	if c.PlanID == "" {
		return out
	}
	if o.Type == typeSkillCall && c.Occurrence > 0 {
		out = append(out, subjectNumber(o.Tenant, c.PlanID, c.Occurrence))
	}
	if !held && o.Decision.Effect != string(catalog.Once) && !o.Node {
		return out
	}
	out = append(out, SubjectEffects(o.Tenant, c.PlanID, c.Step))
	if held {
		out = append(out, SubjectPlan(o.Tenant, c.PlanID))
	}
	if o.Signer != intents.RoleTask { // it may name any step
		out = append(out, SubjectPlanState(o.Tenant, c.PlanID))
	}
	return out
}

// OutcomeTouches are what the outcome of a dispatched order changes: the effects of
// its step, or, where it breaks the step's contract, the task and the plan, and its breaker. released:
// it was held, and the plan waits for it.
func (o *Order) OutcomeTouches(out intents.Outcome, released bool) []storage.Subject {
	c := o.Context
	touches := append(o.BreakerTouches(&out), o.closesSession()...)
	if c.PlanID == "" {
		return touches
	}
	if released || o.Decision.Effect == string(catalog.Once) || o.Node {
		touches = append(touches, SubjectEffects(o.Tenant, c.PlanID, c.Step))
	}
	if out.Status == intents.StatusIndetermined {
		touches = append(touches, subjectUnknown(o.Tenant, c.PlanID, c.Step))
	}
	violates := o.Type == typeWriteMemory && out.Code == intents.ContractViolation
	if released || violates {
		touches = append(touches, SubjectPlan(o.Tenant, c.PlanID))
	}
	if violates {
		touches = append(touches, SubjectPlanState(o.Tenant, c.PlanID), SubjectTask(o.Tenant, c.TaskID))
	}
	return touches
}
