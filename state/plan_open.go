package state

import (
	"fmt"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/storage"
)

// planOpen opens a plan for a user's request.
var planOpen = newTransition(TypePlanOpen,
	func(v *View, o Intent, a catalog.PlanOpen) (Effect, error) {
		if c := o.Context; c.PlanID != "" && c.PlanID != a.PlanID {
			return Effect{}, intents.Refuse(intents.TaskScope, "/context/plan_id", "context names another plan")
		}
		if err := v.timedID(o, intents.KindPlan, a.PlanID, "/intent/args/plan_id"); err != nil {
			return Effect{}, err
		}
		if _, ok := v.wholePlan(o.Tenant, a.PlanID); ok {
			return Effect{}, illegal("/intent/args/plan_id", "a plan with this id exists")
		}
		if err := opensForClient(o, a); err != nil {
			return Effect{}, err
		}
		p, err := v.s.newPlan(o, a)
		if err != nil {
			return Effect{}, err
		}
		if err := v.mayRun(o, p); err != nil {
			return Effect{}, err
		}
		if err := v.mayTurn(o, p, a); err != nil {
			return Effect{}, err
		}
		v.addRead(SubjectRegistry)
		if err := v.mayFire(o, a); err != nil {
			return Effect{}, err
		}
		if a.Agent != "" {
			v.addRead(SubjectTenant(o.Tenant))
		}
		if a.Routing != nil {
			v.addRoutingReads(o)
		}
		writes := append(p.writes(true), p.turnSubjects()...)
		if p.Scheduled {
			writes = append(writes, subjectSchedules(o))
		}
		return Effect{p.answer(), writes}, nil
	},
	func(s *State, o Intent, a catalog.PlanOpen) error {
		if s.plans[o.Tenant+"/"+a.PlanID] != nil {
			return fmt.Errorf("a second plan %s", a.PlanID)
		}
		p, err := s.newPlan(o, a)
		if err != nil {
			return err
		}
		s.open[o.Tenant]++
		s.openAll++
		s.plans[o.Tenant+"/"+a.PlanID] = p
		s.takeTurn(p, o.Released)
		s.takeSession(p, o.Position)
		s.fired(o, a)
		return nil
	}).retainsAllBut("task", "turn/added_instruction", "turn/history/content", "turn/location", "turn/session_metadata", "turn/session_name", "turn/user_email", "turn/user_name").restores(restoreRequest)

// restoreRequest puts the request back.
func restoreRequest(p *catalog.PlanView, o Intent) error {
	a, err := argsOf[catalog.PlanOpen](o)
	p.Task = a.Task
	for i := range p.Steps {
		if p.Agent != "" { // its step has the agent's name
			p.Steps[i].Task = p.Agent
		}
	}
	return err
}

// newPlan is a plan as plan.open begins it. An agent's plan has its only step at once, and the
// id of its plan.open as digest.
func (s *State) newPlan(o Intent, a catalog.PlanOpen) (*plan, error) {
	p := &plan{
		Turn: a.Turn, Scheduled: a.Schedule != nil, ByAgent: a.Schedule != nil && s.schedules[ofUser(o)+a.Schedule.ID].ByAgent,
		Opened: o.Position, Texts: []int64{o.Recorded}, Claimed: storage.NoPosition, Unheld: o.Decision.Verdict == intents.Hold,
		Roles: o.Roles, Client: o.Grant.Client, Trace: o.TraceID,
		Results: make(map[int][]string), ByIntent: make(map[string]intentRef),
		View: catalog.PlanView{
			PlanID: a.PlanID, TenantID: o.Tenant, UserID: o.User, SessionID: o.Context.SessionID,
			TurnID: o.Context.TurnID, Status: catalog.PlanPending, Task: a.Task, MaxSteps: catalog.MaxSteps,
			Steps: []catalog.StepView{}, History: []catalog.Replan{}, CreatedAt: o.At,
		},
	}
	if a.Request != nil {
		p.Request = a.Request.Digest
	}
	agent := a.Agent
	if a.Routing != nil {
		var err error
		if agent, err = s.enter(p, o, a); err != nil {
			return nil, err
		}
	}
	if agent == "" {
		p.Registry = s.registryNow(o.Tenant)
		return p, nil
	}
	of := s.runsOf
	if a.APIKey != "" {
		of = s.clientOf(a.APIKey)
	}
	runs, skills, err := of(o.Tenant, agent)
	if err != nil {
		return nil, err
	}
	p.runBy(agent, runs, skills, o.Decision.IntentID)
	return p, nil
}
