package state

import (
	"fmt"
	"strconv"
	"strings"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/state/workflows"
)

// workflowStart opens a plan that is the run of a workflow.
var workflowStart = newTransition(TypeWorkflowStart,
	func(v *View, o Intent, a catalog.WorkflowStart) (Effect, error) {
		if err := v.newPlanID(o, RunOf(o), "/intent/args/run_id"); err != nil {
			return Effect{}, err
		}
		v.addRead(SubjectRegistry)
		v.addRead(SubjectTenant(o.Tenant))
		p, err := v.s.newRun(o, a)
		if err != nil {
			return Effect{}, err
		}
		if err := v.mayRunAgents(o, p.View.Steps, "/intent/args/workflow_id"); err != nil {
			return Effect{}, err
		}
		if wrong := p.Run.Graph.CheckInputs(a.Inputs); len(wrong) > 0 && !o.Erased {
			x := intents.Refuse(intents.MalformedArgs, "/intent/args/inputs"+wrong[0].Pointer, wrong[0].Reason)
			x.Violations = wrong
			return Effect{}, x
		}
		for _, n := range p.Run.Graph.Nodes {
			if faults := v.s.inputFaults(o.Tenant, n); len(faults) > 0 {
				return Effect{}, illegal("/intent/args/workflow_id", "its node "+n.ID+" gives the skill "+n.Fn+" what it does not take: "+faults[0].Pointer+": "+faults[0].Reason)
			}
		}
		return Effect{p.answer(), p.writes(true)}, nil
	},
	func(s *State, o Intent, a catalog.WorkflowStart) error {
		p, err := s.newRun(o, a)
		if err != nil {
			return err
		}
		s.inherit(p, o)
		return s.addPlan(p)
	}).retainsAllBut("inputs").restores(restoreNodes)

// restoreNodes restores the tasks of nodes, which are their types.
func restoreNodes(p *catalog.PlanView, _ Intent) error {
	for i := range p.Steps {
		p.Steps[i].Task = p.Steps[i].Type
	}
	return nil
}

// RunOf is the plan_id of the run that an intent opens: the one that it names, or one derived
// from its content and the time of its decision.
func RunOf(o Intent) string {
	a, err := ArgsOf[catalog.WorkflowStart](o)
	if err == nil && a.RunID != "" && o.Type == TypeWorkflowStart {
		return a.RunID
	}
	millis := strconv.FormatInt(o.Now.UnixMilli(), 36)
	digest := strings.TrimPrefix(o.Decision.IntentID, "sha256:")
	return fmt.Sprintf("plan_%011s%.16s", millis, digest)
}

// OpensRun reports whether an accepted intent opens a run.
func OpensRun(o Intent) bool {
	return o.Decision.Verdict != intents.Deny && (o.Type == TypeWorkflowStart || o.Type == TypeRunReplay)
}

// RunBy is the plan_id of the run that a recorded intent has opened, or will open: a held intent
// opens it when it is released.
func (s *State) RunBy(o Intent) string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.runBy(o)
}

func (s *State) runBy(o Intent) string {
	for _, p := range s.plans {
		if p.View.Run != nil && (p.Opened == o.Recorded || p.View.PlanDigest == o.Decision.IntentID) {
			return p.View.PlanID
		}
	}
	return RunOf(o)
}

// workflowOf is a workflow that a tenant has: its own, or that of system.
func (s *State) workflowOf(tenant, id string) (*workflows.Graph, error) {
	var names []string
	for _, of := range []string{tenant, systemTenant} {
		r := s.agents[of]
		if r == nil {
			continue
		}
		for _, g := range r.Scopes.Workflows {
			if g.WorkflowID == id {
				return g, nil
			}
			names = append(names, g.WorkflowID)
		}
	}
	return nil, illegal("/intent/args/workflow_id", catalog.Like("the tenant has no such workflow", id, names))
}

// newRun is a run as workflow.start opens it.
func (s *State) newRun(o Intent, a catalog.WorkflowStart) (*plan, error) {
	g, err := s.workflowOf(o.Tenant, a.WorkflowID)
	if err != nil {
		return nil, err
	}
	p := s.emptyRun(o, &run{Graph: g, Intents: make(map[int]*nodeIntent)})
	p.View.Run.Priority = a.Priority
	if !o.Erased {
		p.Run.Inputs = a.Inputs
	}
	return p, s.takeAgents(p, 0, "/intent/args/workflow_id")
}

// emptyRun is a plan of which no node has begun.
func (s *State) emptyRun(o Intent, r *run) *plan {
	id, g := RunOf(o), r.Graph
	p := emptyPlan(o, id)
	p.Run, p.View.Revision, p.View.PlanDigest, p.View.MaxSteps = r, 1, o.Decision.IntentID, catalog.MaxNodes
	p.View.Steps = make([]catalog.StepView, 0, len(g.Nodes))
	p.View.Run = &catalog.RunView{RunID: id, WorkflowID: g.WorkflowID, Version: g.Version, Digest: g.Digest, MaxDays: g.MaxDays}
	for i, n := range g.Nodes {
		p.View.Steps = append(p.View.Steps, nodeView(n, i+1, 1))
	}
	p.showEdges()
	return p
}

// takeAgents fixes what the agents of a run's nodes may do, for nodes from a number on.
func (s *State) takeAgents(p *plan, from int, pointer string) error {
	for i := from; i < len(p.View.Steps); i++ {
		step := &p.View.Steps[i]
		if step.Agent == "" {
			continue
		}
		r, skills, err := s.runsOf(p.View.TenantID, step.Agent)
		if err != nil {
			return illegal(pointer, "its node "+step.ID+" needs the agent "+step.Agent+", which cannot be run")
		}
		r.dropAsks()
		if p.Agents == nil {
			p.Agents = make(map[int]*runs)
		}
		step.Skills, p.Agents[step.Step] = skills, r
	}
	return nil
}

// capabilitiesNow are those of the roles that an intent's actor has now: of its grant, or its
// row.
func (v *View) capabilitiesNow(o Intent) []string {
	v.addRead(SubjectTenant(o.Tenant))
	roles, disabled := v.s.dir.RolesNow(o.Tenant, o.User, o.Grant.Caller(), o.Grant.Roles)
	if o.Signer == intents.RoleOperator {
		roles, _, disabled = v.s.dir.UserRoles(o.Tenant, o.User)
	}
	if disabled {
		return nil
	}
	caps, _ := v.s.dir.Capabilities(o.Tenant, roles)
	return caps
}

// mayRunAgents refuses nodes whose agents the actor may not run.
func (v *View) mayRunAgents(o Intent, nodes []catalog.StepView, pointer string) error {
	if o.Erased {
		return nil
	}
	caps := v.capabilitiesNow(o)
	for _, s := range nodes {
		if need := catalog.RunAgent + ":" + s.Agent; s.Agent != "" && !Covers(caps, need) {
			return intents.Refuse(intents.TaskScope, pointer, "the node "+s.ID+" runs an agent that the user may not run: it needs "+need)
		}
	}
	return nil
}
