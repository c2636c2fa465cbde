package state

import (
	"fmt"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/storage"
)

// Subjects are the pieces of state that decisions read. A commit asserts for each that it was
// last written where the decision saw it.
//
// A plan is four kinds of them, so that tasks which run in parallel do not make each other's
// intents stale: an intent of a task reads the task and planstate, an intent that acts once also
// the effects of its step, one that asks another agent the asks of its step, and a transition of
// the plan everything that it reads and answers with.
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

// SubjectPlanState is what every intent of a plan reads of it: status, epoch, revision and
// replan count. It changes less often than the plan's steps.
func SubjectPlanState(tenant, plan string) storage.Subject {
	return storage.Subject("planstate/" + tenant + "/" + plan)
}

// SubjectEffects are the intents of a step of a plan that act once or were held, and their
// outcomes.
func SubjectEffects(tenant, plan string, step int) storage.Subject {
	return storage.Subject(fmt.Sprintf("effects/%s/%s/%d", tenant, plan, step))
}

// subjectUnknown are those intents whose outcome is unknown.
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

// SubjectIntent is an intent that is held, indeterminate or resolved.
func SubjectIntent(intentID string) storage.Subject { return storage.Subject("intent/" + intentID) }

func subjectGrants(tenant, sub string) storage.Subject {
	return storage.Subject("grants/" + tenant + "/" + sub)
}

// subjectTaskKey is written by the step that introduces a key: no second step may.
func subjectTaskKey(kid string) storage.Subject { return storage.Subject("taskkey/" + kid) }

// wholePlan finds a plan for a transition, and adds all of it that the transition reads or
// answers with to the reads.
func (v *View) wholePlan(tenant, id string) (*plan, bool) {
	p, ok := v.s.plans[tenant+"/"+id]
	if ok {
		v.addPlanReads(p)
		return p, true
	}
	v.addRead(SubjectPlan(tenant, id))
	v.addRead(SubjectPlanState(tenant, id))
	return nil, false
}

// addPlanReads adds a plan to the decision's reads: its state, its steps, and the effects of
// steps that are not done. The lock must be held.
func (v *View) addPlanReads(p *plan) {
	tenant, id := p.View.TenantID, p.View.PlanID
	v.addRead(SubjectPlan(tenant, id))
	v.addRead(SubjectPlanState(tenant, id))
	if p.View.Run != nil { // transitions of a run return none of them
		return
	}
	for _, s := range p.View.Steps {
		if s.Status != catalog.StepDone {
			v.addRead(SubjectEffects(tenant, id, s.Step))
			if p.Runs != nil {
				v.addRead(SubjectAsks(tenant, id, s.Step))
			}
		}
	}
	for _, f := range p.IntentHistory {
		if f.Step > 0 && p.step(f.Step) == nil { // of a step that a revision has removed
			v.addRead(SubjectEffects(tenant, id, f.Step))
		}
	}
}

// writes lists what a transition of the plan writes; state: not only its steps.
func (p *plan) writes(state bool) []storage.Subject {
	out := []storage.Subject{SubjectPlan(p.View.TenantID, p.View.PlanID)}
	if state {
		out = append(out, SubjectPlanState(p.View.TenantID, p.View.PlanID))
	}
	return out
}

// writesOfTasks lists what a transition writes that ends the plan's live tasks.
func (p *plan) writesOfTasks() []storage.Subject {
	out := p.writes(true)
	for _, t := range p.liveTasks() {
		out = append(out, SubjectTask(t.Tenant, t.ID))
	}
	return out
}

// writesOfEnd lists what a transition writes that ends the plan.
func (p *plan) writesOfEnd() []storage.Subject { return append(p.writesOfTasks(), p.turnSubjects()...) }

// Writes lists what an intent writes that is held or executed by an executor. For an intent of
// the router see Effect.Writes.
func (o *Intent) Writes() []storage.Subject {
	c := o.Context
	held := o.Decision.Verdict == intents.Hold
	var out []storage.Subject
	if held && c.Cause != "" { // it may use up an edit
		out = append(out, SubjectIntent(c.Cause))
	}
	if o.Standing != "" {
		out = append(out, SubjectIntent(o.Standing))
	}
	if c.PlanID == "" {
		return out
	}
	if o.Type == TypeSkillCall && c.Occurrence > 0 {
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

// OutcomeWrites lists what the outcome of a dispatched intent writes: the effects of its step,
// or, if it breaks the step's contract, the task and the plan. released: it was held, and the plan
// waits for it.
func (o *Intent) OutcomeWrites(out intents.Outcome, released bool) []storage.Subject {
	c := o.Context
	writes := o.closesSession()
	if c.PlanID == "" {
		return writes
	}
	writes = append(writes, o.writesOfSources(out)...)
	if released || o.Decision.Effect == string(catalog.Once) || o.Node {
		writes = append(writes, SubjectEffects(o.Tenant, c.PlanID, c.Step))
	}
	if out.Status == intents.StatusIndetermined {
		writes = append(writes, subjectUnknown(o.Tenant, c.PlanID, c.Step))
	}
	violates := o.Type == typeWriteMemory && out.Code == intents.ContractViolation
	if released || violates {
		writes = append(writes, SubjectPlan(o.Tenant, c.PlanID))
	}
	if violates {
		writes = append(writes, SubjectPlanState(o.Tenant, c.PlanID), SubjectTask(o.Tenant, c.TaskID))
	}
	return writes
}
