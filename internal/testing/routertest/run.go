package routertest

import (
	"encoding/json"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

// Run is a run of a workflow, advanced by a workflow key.
type Run struct {
	*Plan
	Nodes map[string]int // step of each node
}

// Node is the task of a node, and the one intent that it may sign.
type Node struct {
	*Task
	NodeIntent catalog.NodeIntent
}

// StartIntent is workflow.start by the gateway.
func (p *Plan) StartIntent(workflow, inputs string) Intent {
	o := p.intent(p.Gateway, "workflow.start", catalog.WorkflowStart{WorkflowID: workflow, Inputs: json.RawMessage(inputs), RunID: p.ID})
	return o
}

// BegunRun starts and claims a run.
func (w *World) BegunRun(id, workflow, inputs string) *Run {
	w.Helper()
	p := w.NewPlan(id)
	p.Digest, p.Revision = w.Want(w.Do(p.StartIntent(workflow, inputs)), intents.OK).IntentID, 1
	r := &Run{Plan: p, Nodes: map[string]int{}}
	r.Claimed()
	return r
}

// Claimed makes the workflow key the run's driver.
func (r *Run) Claimed() catalog.PlanDetails {
	r.Helper()
	a := r.Want(r.Do(r.ClaimIntent()), intents.OK)
	r.Epoch++
	for _, s := range Result[catalog.PlanView](r.World, a).Steps {
		r.Nodes[s.ID] = s.Step
	}
	return DetailsOf(r.World, a)
}

// ClaimIntent is plan.claim for the next epoch.
func (r *Run) ClaimIntent() Intent {
	o := r.Plan.ClaimIntent(r.Epoch + 1)
	o.By = r.Workflow
	return o
}

// DetailsOf has the details of an answer that are not recorded.
func DetailsOf(w *World, a *intents.Answer) (t catalog.PlanDetails) {
	w.Helper()
	w.Must(json.Unmarshal(a.Details, &t))
	return t
}

// BeginIntent is step for a node.
func (r *Run) BeginIntent(node string) (Intent, *Task) {
	r.Helper()
	t := r.NewTask(r.Nodes[node])
	if r.Revision > 1 { // a node from before a patch has its own
		t.Revision = r.View().Steps[r.Nodes[node]-1].Revision
	}
	o := r.StepIntent(t.StepArgs())
	o.By = r.Workflow
	return o, t
}

// Begin opens the task of a node.
func (r *Run) Begin(node string) *Node {
	r.Helper()
	o, t := r.BeginIntent(node)
	return &Node{t, *DetailsOf(r.World, r.Want(r.Do(o), intents.OK)).Intent}
}

// SkipIntent is node.skip.
func (r *Run) SkipIntent(node string) Intent {
	return r.intent(r.Workflow, "node.skip", catalog.NodeSkip{PlanID: r.ID, Epoch: r.Epoch, Step: r.Nodes[node]})
}

// CloseIntent is plan.close.
func (r *Run) CloseIntent(status string) Intent {
	a := catalog.PlanClose{PlanID: r.ID, Epoch: r.Epoch, Status: status}
	if status == "complete" {
		a.Response = "Complete."
	} else {
		a.Failure = &catalog.Failure{Reason: "a node has failed", CompletedSteps: []int{}}
	}
	return r.intent(r.Workflow, "plan.close", a)
}

// Close closes the run.
func (r *Run) Close(status string) *intents.Answer { r.Helper(); return r.Do(r.CloseIntent(status)) }

// SignIntent is the intent of the node.
func (n *Node) SignIntent() Intent {
	o := n.Intent(n.NodeIntent.Type, n.NodeIntent.Args)
	o.Ctx.Occurrence = n.NodeIntent.Occurrence
	return o
}

// Sign submits the intent of the node.
func (n *Node) Sign() *intents.Answer { n.Helper(); return n.Do(n.SignIntent()) }

// Ends ends the task of the node, with the intent_id of its intent where it is done.
func (n *Node) Ends(status, intent string) *intents.Answer {
	n.Helper()
	f := catalog.StepFinish{TaskID: n.TaskID, Status: status, Intent: intent}
	if status == "failed" {
		f.Reason = "it failed"
	}
	return n.Do(n.Intent("step.finish", f))
}

// Done executes the node, and returns the possible next steps of the run.
func (n *Node) Done() catalog.PlanDetails {
	n.Helper()
	a := n.Want(n.Sign(), intents.OK)
	return DetailsOf(n.World, n.Want(n.Ends("done", a.IntentID), intents.OK))
}

// PatchIntent is graph.patch by the planner, while it works on a node; none: it says no node.
func (r *Run) PatchIntent(node, patch string) Intent {
	o := r.intent(r.Planner, "graph.patch", catalog.GraphPatch{RunID: r.ID, Patch: json.RawMessage(patch)})
	o.Ctx.PlanID, o.Ctx.NodeID = "", node
	return o
}

// Patched adopts the run as changed by a patch.
func (r *Run) Patched(a *intents.Answer) {
	r.Helper()
	r.Digest, r.Revision = a.IntentID, r.Revision+1
	for _, s := range r.View().Steps {
		r.Nodes[s.ID] = s.Step
	}
}
