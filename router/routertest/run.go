package routertest

import (
	"encoding/json"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

// Run is a run of a workflow, moved by a workflow key.
type Run struct {
	*Plan
	Nodes map[string]int // step of each node
}

// Node is the task of a node, and the one order that it may seal.
type Node struct {
	*Task
	Told catalog.NodeOrder
}

// StartOrder is workflow.start by the gateway.
func (p *Plan) StartOrder(workflow, inputs string) Order {
	o := p.order(p.Gateway, "workflow.start", catalog.WorkflowStart{WorkflowID: workflow, Inputs: json.RawMessage(inputs), RunID: p.ID})
	return o
}

// BegunRun starts and claims a run.
func (w *World) BegunRun(id, workflow, inputs string) *Run {
	w.Helper()
	p := w.NewPlan(id)
	p.Digest, p.Revision = w.Want(w.Do(p.StartOrder(workflow, inputs)), intents.OK).IntentID, 1
	r := &Run{Plan: p, Nodes: map[string]int{}}
	r.Claimed()
	return r
}

// Claimed makes the workflow key the run's driver.
func (r *Run) Claimed() catalog.Told {
	r.Helper()
	a := r.Want(r.Do(r.ClaimOrder()), intents.OK)
	r.Epoch++
	for _, s := range Result[catalog.PlanView](r.World, a).Steps {
		r.Nodes[s.ID] = s.Step
	}
	return Told(r.World, a)
}

// ClaimOrder is plan.claim for the next epoch.
func (r *Run) ClaimOrder() Order {
	o := r.Plan.ClaimOrder(r.Epoch + 1)
	o.By = r.Workflow
	return o
}

// Told is what an answer tells beside what is recorded.
func Told(w *World, a *intents.Answer) (t catalog.Told) {
	w.Helper()
	w.Must(json.Unmarshal(a.Told, &t))
	return t
}

// BeginOrder is step for a node.
func (r *Run) BeginOrder(node string) (Order, *Task) {
	r.Helper()
	t := r.NewTask(r.Nodes[node])
	if r.Revision > 1 { // a node of before a patch keeps its own
		t.Revision = r.View().Steps[r.Nodes[node]-1].Revision
	}
	o := r.StepOrder(t.StepArgs())
	o.By = r.Workflow
	return o, t
}

// Begin opens the task of a node.
func (r *Run) Begin(node string) *Node {
	r.Helper()
	o, t := r.BeginOrder(node)
	return &Node{t, *Told(r.World, r.Want(r.Do(o), intents.OK)).Order}
}

// SkipOrder is node.skip.
func (r *Run) SkipOrder(node string) Order {
	return r.order(r.Workflow, "node.skip", catalog.NodeSkip{PlanID: r.ID, Epoch: r.Epoch, Step: r.Nodes[node]})
}

// CloseOrder is plan.close.
func (r *Run) CloseOrder(status string) Order {
	a := catalog.PlanClose{PlanID: r.ID, Epoch: r.Epoch, Status: status}
	if status == "complete" {
		a.Response = "Complete."
	} else {
		a.Failure = &catalog.Failure{Reason: "a node has failed", CompletedSteps: []int{}}
	}
	return r.order(r.Workflow, "plan.close", a)
}

// Close closes the run.
func (r *Run) Close(status string) *intents.Answer { r.Helper(); return r.Do(r.CloseOrder(status)) }

// SealOrder is the order of the node.
func (n *Node) SealOrder() Order {
	o := n.Order(n.Told.Type, n.Told.Args)
	o.Ctx.Occurrence = n.Told.Occurrence
	return o
}

// Seal submits the order of the node.
func (n *Node) Seal() *intents.Answer { n.Helper(); return n.Do(n.SealOrder()) }

// Ends ends the task of the node, with the intent_id of its order where it is done.
func (n *Node) Ends(status, order string) *intents.Answer {
	n.Helper()
	f := catalog.StepFinish{TaskID: n.TaskID, Status: status, Order: order}
	if status == "failed" {
		f.Reason = "it failed"
	}
	return n.Do(n.Order("step.finish", f))
}

// Done carries out the node, and gives what the run can do next.
func (n *Node) Done() catalog.Told {
	n.Helper()
	a := n.Want(n.Seal(), intents.OK)
	return Told(n.World, n.Want(n.Ends("done", a.IntentID), intents.OK))
}

// PatchOrder is graph.patch by the planner, while it works on a node; none: it says no node.
func (r *Run) PatchOrder(node, patch string) Order {
	o := r.order(r.Planner, "graph.patch", catalog.GraphPatch{RunID: r.ID, Patch: json.RawMessage(patch)})
	o.Ctx.PlanID, o.Ctx.NodeID = "", node
	return o
}

// Patched takes over what a patch has made of the run.
func (r *Run) Patched(a *intents.Answer) {
	r.Helper()
	r.Digest, r.Revision = a.IntentID, r.Revision+1
	for _, s := range r.View().Steps {
		r.Nodes[s.ID] = s.Step
	}
}
