package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/schemas"
	"aob.dev/writ/state/workflows"
	"aob.dev/writ/storage"
)

// graphPatch is a revision of a run: it adds nodes and edges, or removes edges. What runs
// continues.
var graphPatch = newTransition(TypeGraphPatch,
	func(v *View, o Intent, a catalog.GraphPatch) (Effect, error) {
		p, err := v.patchable(o, a)
		if err != nil {
			return Effect{}, err
		}
		v.addRead(SubjectRegistry)
		v.addRead(SubjectTenant(o.Tenant))
		after, input, err := v.s.patched(p, o, a)
		if err != nil {
			return Effect{}, err
		}
		if err := v.mayRunAgents(o, after.View.Steps[len(p.View.Steps):], "/intent/args/patch/add_nodes"); err != nil {
			return Effect{}, err
		}
		if known := o.Patch != nil || o.Position != storage.NoPosition; known && !reflect.DeepEqual(o.Patch, input) {
			return Effect{}, illegal("/intent/args/patch", "not what it came to before: the approved skills or the run have changed")
		}
		v.Patch = input
		return Effect{after.answer(), p.writes(true)}, nil
	},
	func(s *State, o Intent, a catalog.GraphPatch) error {
		p, ok := s.plans[o.Tenant+"/"+a.RunID]
		if !ok || p.Run == nil {
			return errors.New("a patch of no run")
		}
		after, _, err := s.patched(p, o, a)
		if err != nil {
			return err
		}
		p.View, p.Run, p.Agents = after.View, after.Run, after.Agents
		p.Unheld = true // nodes may be ready while nobody drives the run
		p.Texts = append(p.Texts, o.Recorded)
		return nil
	}).retainsAllBut("patch/justification", "patch/add_nodes/inputs", "patch/add_nodes/from")

// patchable finds the run that a patch is for. A missing run and another user's are refused alike.
func (v *View) patchable(o Intent, a catalog.GraphPatch) (*plan, error) {
	const at = "/intent/args/run_id"
	p, ok := v.wholePlan(o.Tenant, a.RunID)
	switch {
	case !ok || p.View.Run == nil || p.View.UserID != o.User && o.Signer != intents.RoleOperator:
		return nil, intents.Refuse(intents.TaskScope, at, "no such run of this user")
	case o.Context.PlanID != "":
		return nil, intents.Refuse(intents.TaskScope, "/context/plan_id", "a patch is no intent of a plan: name the run in run_id alone")
	case p.View.Status.Ended():
		return nil, illegal(at, "the run is "+string(p.View.Status))
	case p.View.Run.ReplayOf != "":
		return nil, illegal(at, "the run repeats another one: nothing of it changes")
	}
	if failed := p.failedNode(); failed != nil {
		return nil, illegal(at, "the node "+failed.ID+" has failed: the run can only be closed as failed")
	}
	return p, nil
}

// patched returns the run as it is after a patch, and the policy input of the patch.
func (s *State) patched(p *plan, o Intent, a catalog.GraphPatch) (*plan, *intents.PatchInput, error) {
	var patch workflows.Patch
	if err := json.Unmarshal(a.Patch, &patch); err != nil {
		return nil, nil, illegal("/intent/args/patch", err.Error())
	}
	patch.Erased = o.Erased || o.Position != storage.NoPosition && p.unknown()
	at := o.Context.NodeID
	if o.Released && o.Patch != nil { // people were asked about this node
		at = o.Patch.Current
	}
	g, current, err := p.Run.Graph.Overlay(patch, at, p.values())
	var faults workflows.Faults
	if errors.As(err, &faults) {
		return nil, nil, illegal("/intent/args/patch"+faults[0].Pointer, faults[0].Reason)
	} else if err != nil {
		return nil, nil, err
	}
	input := &intents.PatchInput{Current: current, Nodes: []intents.NodeInput{}, Rewired: p.Run.Graph.RewiredNodes(g)}
	after, run := p.clone(), *p.Run
	run.Graph = g
	run.Unknown = run.Unknown || o.Erased
	after.Run, after.Agents = &run, maps.Clone(p.Agents)
	after.View.Revision++
	after.View.PlanDigest = o.Decision.IntentID
	for i, n := range patch.AddNodes {
		pointer := fmt.Sprintf("/intent/args/patch/add_nodes/%d", i)
		node, wrong := s.nodeInput(o.Tenant, n)
		if wrong != "" {
			return nil, nil, illegal(pointer+"/fn", wrong)
		}
		if faults := s.inputFaults(o.Tenant, n); len(faults) > 0 && !patch.Erased {
			return nil, nil, faultyInput(pointer, n, faults)
		}
		input.Nodes = append(input.Nodes, node)
		after.View.Steps = append(after.View.Steps, nodeView(n, len(after.View.Steps)+1, after.View.Revision))
	}
	after.showEdges()
	return after, input, s.takeAgents(after, len(p.View.Steps), "/intent/args/patch/add_nodes")
}

// inputFaults lists what is wrong with the literal inputs of a function, by the schema that its
// skill was approved with.
func (s *State) inputFaults(tenant string, n workflows.Node) workflows.Faults {
	if n.Type != workflows.Function {
		return nil
	}
	pin, ok, err := s.dir.SkillNamed(tenant, n.Fn)
	if err != nil || !ok {
		return nil //nolint:nilerr // it is told with the name of the skill
	}
	return n.CheckInput(s.dir.tenants[tenant].Inputs[pin.Skill])
}

// faultyInput refuses a graph because of the inputs of a node at a pointer.
func faultyInput(pointer string, n workflows.Node, faults workflows.Faults) error {
	x := intents.Refuse(intents.MalformedArgs, pointer+faults[0].Pointer, "the skill "+n.Fn+" does not take this: "+faults[0].Reason)
	for _, f := range faults {
		x.Violations = append(x.Violations, schemas.Violation{Pointer: f.Pointer, Reason: f.Reason})
	}
	return x
}

// nodeInput is a new node as policies see it. A function's skill must be approved.
func (s *State) nodeInput(tenant string, n workflows.Node) (f intents.NodeInput, wrong string) {
	f = intents.NodeInput{ID: n.ID, Type: n.Type}
	switch n.Type {
	case workflows.Function:
		pin, ok, err := s.dir.SkillNamed(tenant, n.Fn)
		var refused *intents.Refusal
		switch {
		case errors.As(err, &refused):
			return f, refused.Reason
		case !ok:
			return f, "no approved skill has this name: have an operator approve it with skill.approve"
		}
		f.Fn, f.Effect = pin.Skill, pin.Effect
	case workflows.Python:
		f.Effect = string(catalog.Pure)
	case workflows.Approval:
		f.Effect = string(catalog.Idempotent)
	case workflows.Agent:
		f.Fn, f.Effect = n.Fn, string(catalog.Once) // whatever its tools do
	}
	return f, ""
}

// nodeView is a node that waits.
func nodeView(n workflows.Node, number, revision int) catalog.StepView {
	step := catalog.StepView{Status: catalog.StepPending, Revision: revision, Type: n.Type, PlanStep: catalog.PlanStep{
		Step: number, ID: n.ID, Task: n.Type, Skills: []string{}, Parallel: true,
		ReturnSpec: catalog.ReturnSpec{Shape: "string", Reason: "what the node is for"},
	}}
	switch n.Type {
	case workflows.Function:
		step.Skills = []string{n.Fn}
	case workflows.Agent:
		step.Agent = n.Fn
	}
	return step
}
