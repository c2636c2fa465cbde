package state

import (
	"fmt"
	"maps"
	"slices"

	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/state/agents"
)

// A step of a planner's plan may name an agent of the registry. Its task runs that agent under
// the agent's own tools and limits, and asks no other. Its result becomes the result of the
// step, as for any other step.

// ofAgentStep lists the intent types of such a task beyond those of its agent: it reads the
// inputs of its step and writes its result.
var ofAgentStep = []string{"read_memory", "write_memory"}

// registryNow returns the revisions in force for system and for a tenant, 0 for none; nil if
// neither has one.
func (s *State) registryNow(tenant string) []int64 {
	out, found := make([]int64, 2), false
	for i, of := range []string{systemTenant, tenant} {
		if r := s.agents[of]; r != nil {
			out[i], found = r.Revision, true
		}
	}
	if !found {
		return nil
	}
	return out
}

// atOpening is a state with the agents that the plan's tenant had when the plan was opened, and
// the current directory. A revision and the one before it are retained.
func (s *State) atOpening(p *plan) (*State, error) {
	past := &State{dir: s.dir, agents: make(map[string]*revision)}
	for i, revision := range p.Registry {
		of := []string{systemTenant, p.View.TenantID}[i]
		r := s.agents[of]
		if revision == 0 { // there was no revision
			continue
		}
		if r != nil && r.Revision != revision {
			r = r.Before
		}
		if r == nil || r.Revision != revision {
			return nil, illegal("/intent/args/steps", "the agents that there were when the plan was opened have been replaced twice: plan without agents")
		}
		past.agents[of] = r
	}
	return past, nil
}

// agentSteps adds to the steps that name an agent the skills that it may call, and returns the
// other agent data by step number.
func (s *State) agentSteps(p *plan, steps []catalog.PlanStep) ([]catalog.PlanStep, map[int]*runs, error) {
	steps, ofStep := slices.Clone(steps), make(map[int]*runs)
	for i := range steps {
		step, at := &steps[i], fmt.Sprintf("/intent/args/steps/%d", i)
		if step.Agent == "" {
			continue
		}
		if len(step.Skills) > 0 {
			return nil, nil, illegal(at+"/skills", "a step of an agent has the agent's tools, and no skills of its own")
		}
		past, err := s.atOpening(p)
		if err != nil {
			return nil, nil, err
		}
		r, skills, err := past.runsOf(p.View.TenantID, step.Agent)
		if err != nil {
			return nil, nil, err
		}
		r.dropAsks()
		r.Types = append(r.Types, ofAgentStep...)
		slices.Sort(r.Types)
		r.Types = slices.Compact(r.Types)
		step.Skills, ofStep[step.Step] = skills, r
	}
	return steps, ofStep, nil
}

// agentAt is the agent that runs a step of the plan; nil if none does.
func (p *plan) agentAt(step int) (name string, r *runs) {
	if p.Runs != nil {
		return p.View.Agent, p.Runs
	}
	if s := p.step(step); s != nil {
		name = s.Agent
	}
	return name, p.Agents[step]
}

// offers lists, by name, the agents of the registry that the steps of a planner's plan may name
// and that the intent's grant lets its user run.
func (v *View) offers(o Intent, p *plan) ([]catalog.OtherAgent, error) {
	v.addRead(SubjectRegistry)
	v.addRead(SubjectTenant(o.Tenant))
	past, err := v.s.atOpening(p)
	if err != nil {
		return nil, nil //nolint:nilerr // it is planned without agents
	}
	set, err := past.agentsOf(o.Tenant, "", nil)
	if err != nil {
		return nil, err
	}
	caps, _ := v.s.dir.Capabilities(o.Tenant, o.Grant.Roles)
	x, err := past.askable(o.Tenant, agents.Scope{SubAgents: runnable(set), Limits: agents.Limits{AskSeconds: int(MaxTaskLife.Seconds())}}, set)
	maps.DeleteFunc(x.Asks, func(name string, r *runs) bool {
		return r.Text+r.File == "" || !Covers(caps, catalog.RunAgent+":"+name)
	})
	return x.others(), err
}
