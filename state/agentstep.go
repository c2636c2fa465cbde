package state

import (
	"fmt"
	"maps"
	"slices"

	"aob.dev/writ/agentic/agents"
	"aob.dev/writ/intents/catalog"
)

// A step of a planner's plan may name an agent of the registry. Its task runs that agent,
// under the agent's own tools and limits, and asks no other. What it finds becomes the
// result of the step, as that of any other does.

// ofAgentStep are the orders of such a task beside those of its agent: it reads the inputs of its step, and
// writes its result.
var ofAgentStep = []string{"read_memory", "write_memory"}

// registryNow are the revisions in force of system and of a tenant, 0 for none; nil: there
// is neither.
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

// atOpening is a state with the agents that the plan's tenant had when the plan was
// opened, and the directory of now. A revision and the one before it are kept.
func (s *State) atOpening(p *plan) (*State, error) {
	past := &State{rules: s.rules, dir: s.dir, agents: make(map[string]*revision)}
	for i, revision := range p.Registry {
		of := []string{systemTenant, p.View.TenantID}[i]
		r := s.agents[of]
		if revision == 0 { // there was none
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

// agentSteps gives the steps that name an agent the skills that it may call, and what
// else there is to know of it, by the number of the step.
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
		r.alone()
		r.Types = append(r.Types, ofAgentStep...)
		slices.Sort(r.Types)
		r.Types = slices.Compact(r.Types)
		step.Skills, ofStep[step.Step] = skills, r
	}
	return steps, ofStep, nil
}

// agentAt is the agent that runs a step of the plan; nil: none does.
func (p *plan) agentAt(step int) (name string, r *runs) {
	if p.Runs != nil {
		return p.View.Agent, p.Runs
	}
	if s := p.step(step); s != nil {
		name = s.Agent
	}
	return name, p.Agents[step]
}

// offers are the agents of the registry that the steps of a planner's plan may name, by
// name, and that the order's grant lets its user run.
func (v *View) offers(o Order, p *plan) ([]catalog.OtherAgent, error) {
	v.rely(SubjectRegistry)
	v.rely(SubjectTenant(o.Tenant))
	past, err := v.s.atOpening(p)
	if err != nil {
		return nil, nil //nolint:nilerr // it is planned without agents
	}
	set, err := past.agentsOf(o.Tenant, "", nil)
	if err != nil {
		return nil, err
	}
	caps, _ := v.s.dir.Capabilities(o.Tenant, o.Grant.Roles)
	x, err := past.askedBy(o.Tenant, agents.Scope{SubAgents: past.runnable(set), Limits: agents.Limits{AskSeconds: int(MaxTaskLife.Seconds())}}, set)
	maps.DeleteFunc(x.Asks, func(name string, r *runs) bool {
		return r.Text+r.File == "" || !Covered(v.s.rules, caps, catalog.RunAgent+":"+name)
	})
	return x.others(), err
}
