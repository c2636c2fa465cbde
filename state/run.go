package state

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/state/workflows"
	"aob.dev/writ/storage"
)

// A run is a plan whose graph comes from a definition: its nodes are steps with an id.

// run is the additional part of an open plan that is the run of a workflow. Once the plan has
// ended, only its view describes the run.
type run struct {
	Graph  *workflows.Graph `json:"graph"`
	Inputs json.RawMessage  `json:"inputs,omitempty"` // canonical; nil: they were erased
	// Unknown: texts of its graph were erased.
	Unknown bool `json:"unknown,omitempty"`
	// Intents of the nodes' last attempts, by step.
	Intents map[int]*nodeIntent `json:"intents,omitempty"`

	Replay *replay `json:"replay,omitempty"` // nil: it repeats no other run
}

// nodeRef locates the intent of a node, or the step.finish of an agent's node.
type nodeRef struct {
	ID       string `json:"id,omitempty"` // intent_id
	Position int64  `json:"position"`
}

// nodeRefs returns the references of the nodes that are done or have failed.
func (p *plan) nodeRefs() map[int]nodeRef {
	out := make(map[int]nodeRef)
	for _, s := range p.View.Steps {
		if n := p.Run.Intents[s.Step]; n != nil && (s.Status == catalog.StepDone || s.Status == catalog.StepFailed) {
			out[s.Step] = n.nodeRef
		}
	}
	return out
}

// nodeIntent is the known part of the intent of a node. That of an agent's node has outputs
// alone.
type nodeIntent struct {
	nodeRef
	Effect  string          `json:"effect,omitempty"` // as decided
	Status  string          `json:"status,omitempty"` // as in the plan's history
	Final   bool            `json:"final,omitempty"`  // people have rejected it: no attempt follows
	Outputs json.RawMessage `json:"outputs,omitempty"`
}

// showEdges puts the edges of the graph into the view and retains their decisions. Earlier
// copies of the view keep the old edges.
func (p *plan) showEdges() {
	r := *p.View.Run
	r.Edges = make([]catalog.RunEdge, len(p.Run.Graph.Edges))
	for i, e := range p.Run.Graph.Edges {
		r.Edges[i] = catalog.RunEdge{From: e.From, To: e.To, Condition: e.Condition}
		for _, was := range p.View.Run.Edges {
			if was.From == e.From && was.To == e.To {
				r.Edges[i].Holds = was.Holds
			}
		}
	}
	p.View.Run = &r
}

// decidedEdges records the decisions about the edges that lead to a node.
func (p *plan) decidedEdges(step int, edges []intents.EdgeInput) {
	s := p.step(step)
	if p.Run == nil || s == nil {
		return
	}
	r := *p.View.Run
	r.Edges = slices.Clone(r.Edges)
	for i := range r.Edges {
		at := slices.IndexFunc(edges, func(e intents.EdgeInput) bool { return e.From == r.Edges[i].From })
		if r.Edges[i].To == s.ID && at >= 0 {
			r.Edges[i].Holds = &edges[at].Holds
		}
	}
	p.View.Run = &r
}

// ofRun reports whether an intent belongs to an open run, whose signer counts.
func (s *State) ofRun(o Intent) bool {
	p := s.plans[o.Tenant+"/"+o.Context.PlanID]
	return p != nil && p.Run != nil
}

// Opens reports whether intents of a type open plans.
func Opens(typ string) bool {
	return typ == TypePlanOpen || typ == TypeWorkflowStart || typ == TypeRunReplay
}

// keepNodeIntent records the intent of a node's task.
func (p *plan) keepNodeIntent(o Intent) {
	s := p.step(o.Context.Step)
	if p.Run == nil || s == nil || s.Type == catalog.NodeAgent || o.Signer != intents.RoleTask {
		return
	}
	status := statusOpen
	if o.Decision.Verdict == intents.Hold {
		status = statusHeld
	}
	p.Run.Intents[s.Step] = &nodeIntent{nodeRef: nodeRef{o.Decision.IntentID, o.Recorded}, Effect: o.Decision.Effect, Status: status}
}

// nodeIntentID is the intent of a node; empty if it has none.
func (p *plan) nodeIntentID(step int) string {
	if n := p.Run.Intents[step]; n != nil {
		return n.ID
	}
	return ""
}

// nodeEnded records how the intent of a node ended.
func (p *plan) nodeEnded(x *openIntent, out intents.Outcome, dispatched bool) {
	if p.Run == nil {
		return
	}
	n := p.Run.Intents[x.Step]
	if n == nil || n.ID != x.ID {
		return
	}
	n.Status, n.Outputs = statusInHistory(out), out.Outputs
	n.Final = out.Code == intents.ApprovalRejected
	if !dispatched {
		n.Status = undelivered
	}
}

// nodeResolved records an operator's statement about the intent of a node: a failed one did
// nothing, and a done one has no outputs.
func (p *plan) nodeResolved(x *openIntent, status string) {
	if p.Run == nil || p.nodeIntentID(x.Step) != x.ID {
		return
	}
	n := p.Run.Intents[x.Step]
	n.Status = undelivered
	if status == string(intents.Done) {
		n.Status, n.Outputs = status, p.Run.Graph.Cut(p.step(x.Step).ID, nil, true)
	}
}

// values are the values that the graph of a run is evaluated with.
func (p *plan) values() workflows.Values {
	v := workflows.Values{RunID: p.View.PlanID, Inputs: p.Run.Inputs, Nodes: make(map[string]workflows.NodeValue, len(p.View.Steps))}
	for _, s := range p.View.Steps {
		n := workflows.NodeValue{Status: string(s.Status), Begun: s.TaskID != ""}
		if o := p.read(s.Step); o != nil {
			n.Intent, n.Outputs = o.ID, o.Outputs
		}
		if s.Status == catalog.StepFailed {
			n.Outputs = p.Run.Graph.Cut(s.ID, nil, false)
		}
		v.Nodes[s.ID] = n
	}
	return v
}

// failedNode is the node because of which a run can only fail; nil if there is none.
func (p *plan) failedNode() *catalog.StepView {
	for i := range p.View.Steps {
		if s := &p.View.Steps[i]; s.Status == catalog.StepFailed && !p.Run.Graph.Tolerates(s.ID) {
			return s
		}
	}
	return nil
}

// nodesEnded reports whether each node of a run has ended so that the run is complete.
func (p *plan) nodesEnded() bool {
	for _, s := range p.View.Steps {
		if s.Status != catalog.StepDone && s.Status != catalog.StepSkipped && s.Status != catalog.StepFailed {
			return false
		}
	}
	return p.failedNode() == nil
}

// mayAdvance checks whether a key may advance a plan: workflow keys advance runs, managers other
// plans.
func mayAdvance(o Intent, p *plan) error {
	if (p.View.Run != nil) != (o.Signer == intents.RoleWorkflow) && (o.Signer == intents.RoleManager || o.Signer == intents.RoleWorkflow) {
		return intents.Refuse(intents.TaskScope, "/sig", "workflow keys move runs, and managers other plans")
	}
	return nil
}

// nodeFailed applies a failed attempt to a node: it is tried again if the definition allows it,
// unless its intent may have acted once.
func (p *plan) nodeFailed(s *catalog.StepView, reason string, at, now time.Time) {
	s.Attempts++
	s.FinishedAt, s.FailureReason = &at, reason
	s.Status = catalog.StepFailed
	retry := p.Run.Graph.Node(s.ID).Retry
	if retry == nil || s.Attempts > retry.Max || p.mayHaveActed(s) {
		return
	}
	due := now.Add(time.Duration(retry.BackoffSec) * time.Second)
	s.Status, s.RetryAt = catalog.StepPending, &due
}

// mayHaveActed reports that no further attempt may follow the last one of a node: its intent may
// have acted once, or people have rejected it.
func (p *plan) mayHaveActed(s *catalog.StepView) bool {
	if t := p.taskOf(s); t != nil && (t.Kept || t.DryRun) { // nothing is executed: the next attempt has the same result
		return true
	}
	if n := p.Run.Intents[s.Step]; n != nil {
		return n.Final || n.Effect == string(catalog.Once) && n.Status != undelivered
	}
	return s.Type == catalog.NodeAgent && slices.ContainsFunc(p.IntentHistory, func(f *pastIntent) bool {
		return f.Step == s.Step && f.Effect == catalog.Once && f.Status != undelivered
	})
}

// resetAttempt removes the intent of a failed attempt if another follows.
func (p *plan) resetAttempt(s *catalog.StepView) {
	if s.Status == catalog.StepPending {
		delete(p.Run.Intents, s.Step)
	}
}

// nodeFinished applies step.finish to the known part of a node's intent.
func (p *plan) nodeFinished(t *task, o Intent, a catalog.StepFinish) {
	s := p.step(t.Step)
	switch {
	case p.Run == nil || s == nil || t.Kept:
	case t.DryRun && a.Status == "done":
		p.Run.Intents[s.Step] = &nodeIntent{nodeRef: nodeRef{a.Intent, o.Recorded}, Outputs: p.Run.Graph.Cut(s.ID, nil, true)}
	case a.Status == "failed":
		p.resetAttempt(s)
	case a.Status == "done" && s.Type == catalog.NodeAgent:
		p.Run.Intents[s.Step] = &nodeIntent{nodeRef: nodeRef{o.Decision.IntentID, o.Recorded}}
		if !o.Erased {
			p.Run.Intents[s.Step].Outputs = p.Run.Graph.Cut(s.ID, repliedOutputs(a.Reply), true)
		}
	}
}

// finishable reports whether a task of a node may end with the given status, which follows from
// its intent.
func (p *plan) finishable(v *View, o Intent, t *task, a catalog.StepFinish) error {
	v.addRead(SubjectEffects(o.Tenant, t.Plan, t.Step))
	n, agent := p.Run.Intents[t.Step], t.Agent != ""
	switch {
	case a.Status == "insufficient":
		return illegal("/intent/args/status", "a node is done, failed or held")
	case t.DryRun && (a.Status == "done" || a.Status == "failed"):
		return nil // as the dry run of its intent returns
	case t.Kept && p.Run.Inputs == nil:
		return nil // its retained result was erased
	case a.Status == "done" && agent && o.TextSize("reply") == 0:
		return illegal("/intent/args/reply", "the task of an agent's node ends with a reply")
	case a.Status == "done" && !agent && (a.Intent == "" || n == nil || n.ID != a.Intent || n.Status != string(intents.Done)):
		return illegal("/intent/args/intent", "done names the intent of the node, which is done")
	case a.Status == "failed" && !agent && n != nil && n.Status == string(intents.Done):
		return illegal("/intent/args/status", "the intent of the node is done: so is the node")
	case a.Status == "failed" && !agent && n != nil && n.Status == statusOpen && o.Signer == intents.RoleTask:
		return illegal("/intent/args/status", "the intent of the node is being carried out")
	}
	return nil
}

// checkNodeRepeat refuses a second intent of an attempt, unless the first certainly had no
// effect.
func (p *plan) checkNodeRepeat(s *catalog.StepView, c intents.Context) error {
	if c.Occurrence != s.Attempts {
		return intents.Refuse(intents.TaskScope, "/context/occurrence", fmt.Sprintf("%d attempts of the node have failed, and its intent says so", s.Attempts))
	}
	if n := p.Run.Intents[s.Step]; n != nil && n.Status != undelivered {
		return repeated(n.ID)
	}
	return nil
}

// RunScopes are the scopes of temporary files of a run's nodes.
func (s *State) RunScopes(tenant, id string) (out []storage.Scope) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	p := s.plans[tenant+"/"+id]
	if p == nil || p.View.Run == nil {
		return nil
	}
	for _, step := range p.View.Steps {
		if step.TaskID != "" {
			out = append(out, storage.Scope{Tenant: tenant, Plan: id, Revision: step.Revision, Step: step.Step})
		}
	}
	return out
}
