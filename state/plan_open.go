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
		if err := v.newPlanID(o, a.PlanID, "/intent/args/plan_id"); err != nil {
			return Effect{}, err
		}
		if err := opensForClient(o, a); err != nil {
			return Effect{}, err
		}
		p, err := v.s.newPlan(o, a, v.sees(o))
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
		p, err := s.newPlan(o, a, o.open)
		if err == nil {
			err = s.addPlan(p)
		}
		var scheduled []intents.Source
		if a.Schedule != nil {
			scheduled = s.schedules[ofUser(o)+a.Schedule.ID].Sources
		}
		if err != nil {
			return err
		}
		s.inherit(p, o, scheduled)
		s.takeTurn(p, o.Released)
		s.takeSession(p, o.Position)
		s.fired(o, a)
		return nil
	}).retainsAllBut("task", "turn/history/content", "turn/images", "turn/location", "turn/session_metadata", "turn/session_name").restores(restoreRequest)

// restoreRequest puts the request back.
func restoreRequest(p *catalog.PlanView, o Intent) error {
	a, err := ArgsOf[catalog.PlanOpen](o)
	p.Task = a.Task
	for i := range p.Steps {
		if p.Agent != "" { // its step has the agent's name
			p.Steps[i].Task = p.Agent
		}
	}
	return err
}

// newPlan is a plan as plan.open begins it. An agent's plan has its only step at once, and the
// id of its plan.open as digest. open reports whether an agent's breaker is open.
func (s *State) newPlan(o Intent, a catalog.PlanOpen, open func(agent string) bool) (*plan, error) {
	p := emptyPlan(o, a.PlanID)
	p.Turn, p.Scheduled, p.Transient = a.Turn, a.Schedule != nil, transientOf(o)
	p.ByAgent = p.Scheduled && s.schedules[ofUser(o)+a.Schedule.ID].ByAgent
	p.View.Task, p.View.MaxSteps, p.View.Steps = a.Task, catalog.MaxSteps, []catalog.StepView{}
	if a.Request != nil {
		p.Request = a.Request.Digest
	}
	agent := a.Agent
	if a.Routing != nil {
		var err error
		if agent, err = s.enter(p, o, a, open); err != nil {
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

// emptyPlan is the plan that an intent opens, without anything to do.
func emptyPlan(o Intent, id string) *plan {
	return &plan{
		Opened: o.Position, Texts: []int64{o.Recorded}, Claimed: storage.NoPosition, Unheld: o.Decision.Verdict == intents.Hold,
		Roles: o.Roles, Client: o.Grant.Client, Trace: o.TraceID,
		Results: make(map[int][]string), ByIntent: make(map[string]intentRef),
		View: catalog.PlanView{
			PlanID: id, TenantID: o.Tenant, UserID: o.User, SessionID: o.Context.SessionID, TurnID: o.Context.TurnID,
			Status: catalog.PlanPending, History: []catalog.Replan{}, CreatedAt: o.At,
		},
	}
}

// newPlanID checks the id of a plan that an intent opens.
func (v *View) newPlanID(o Intent, id, pointer string) error {
	if c := o.Context; c.PlanID != "" && c.PlanID != id {
		return intents.Refuse(intents.TaskScope, "/context/plan_id", "context names another plan")
	}
	if err := v.timedID(o, intents.KindPlan, id, pointer); err != nil {
		return err
	}
	if _, ok := v.wholePlan(o.Tenant, id); ok {
		return illegal(pointer, "a plan with this id exists")
	}
	return nil
}

// putOpen adds a plan to the open ones.
func (s *State) putOpen(p *plan) {
	s.open[p] = true
	s.opened[p.View.TenantID]++
}

// addPlan adds an open plan.
func (s *State) addPlan(p *plan) error {
	name := p.View.TenantID + "/" + p.View.PlanID
	if s.plans[name] != nil {
		return fmt.Errorf("a second plan %s", name)
	}
	s.plans[name] = p
	s.putOpen(p)
	return nil
}
