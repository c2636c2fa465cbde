package state

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"aob.dev/writ/agentic/workflows"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/storage"
)

// A run is a plan whose graph a definition gives: its nodes are steps with an id.

// run is what an open plan has that is the run of a workflow. Once the plan has ended,
// its view alone says what it was.
type run struct {
	Graph  *workflows.Graph `json:"graph"`
	Inputs json.RawMessage  `json:"inputs,omitempty"` // canonical; nil: they were erased
	// Unknown says that texts of its graph were erased.
	Unknown bool `json:"unknown,omitempty"`
	// Orders of the nodes' last attempts, by step.
	Orders map[int]*nodeOrder `json:"orders,omitempty"`

	Replay *replay `json:"replay,omitempty"` // nil: it repeats no other
}

// nodeRef says where the order of a node is, or the step.finish of an agent's node.
type nodeRef struct {
	ID       string `json:"id,omitempty"` // intent_id
	Position int64  `json:"position"`
}

// nodeRefs are those of the nodes that are done or have failed.
func (p *plan) nodeRefs() map[int]nodeRef {
	out := make(map[int]nodeRef)
	for _, s := range p.View.Steps {
		if n := p.Run.Orders[s.Step]; n != nil && (s.Status == catalog.StepDone || s.Status == catalog.StepFailed) {
			out[s.Step] = n.nodeRef
		}
	}
	return out
}

// nodeOrder is what is known of the order of a node. That of an agent's node has outputs alone.
type nodeOrder struct {
	nodeRef
	Effect  string          `json:"effect,omitempty"` // as decided
	Status  string          `json:"status,omitempty"` // as of a fact
	Final   bool            `json:"final,omitempty"`  // people have turned it down: no attempt follows
	Outputs json.RawMessage `json:"outputs,omitempty"`
}

// showEdges puts the edges of the graph into the view; what was decided of them stays. Who has
// the view of before keeps that.
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

// decidedEdges notes what was decided of the edges that lead to a node.
func (p *plan) decidedEdges(step int, edges []intents.FactEdge) {
	s := p.step(step)
	if p.Run == nil || s == nil {
		return
	}
	r := *p.View.Run
	r.Edges = slices.Clone(r.Edges)
	for i := range r.Edges {
		at := slices.IndexFunc(edges, func(e intents.FactEdge) bool { return e.From == r.Edges[i].From })
		if r.Edges[i].To == s.ID && at >= 0 {
			r.Edges[i].Holds = &edges[at].Holds
		}
	}
	p.View.Run = &r
}

// ofRun says whether an order is of an open run, whose signer counts.
func (s *State) ofRun(o Order) bool {
	p := s.plans[o.Tenant+"/"+o.Context.PlanID]
	return p != nil && p.Run != nil
}

// Opens says whether orders of a type open plans.
func Opens(typ string) bool {
	return typ == TypePlanOpen || typ == TypeWorkflowStart || typ == TypeRunReplay
}

// nodeOrdered remembers the order of a node's task.
func (p *plan) nodeOrdered(o Order) {
	s := p.step(o.Context.Step)
	if p.Run == nil || s == nil || s.Type == catalog.NodeAgent || o.Signer != intents.RoleTask {
		return
	}
	status := factOpen
	if o.Decision.Verdict == intents.Hold {
		status = factHeld
	}
	p.Run.Orders[s.Step] = &nodeOrder{nodeRef: nodeRef{o.Decision.IntentID, o.Recorded}, Effect: o.Decision.Effect, Status: status}
}

// nodeOrderID is the order of a node; empty: it has none.
func (p *plan) nodeOrderID(step int) string {
	if n := p.Run.Orders[step]; n != nil {
		return n.ID
	}
	return ""
}

// nodeEnded notes how the order of a node ended.
func (p *plan) nodeEnded(x *openOrder, out intents.Outcome, dispatched bool) {
	if p.Run == nil {
		return
	}
	n := p.Run.Orders[x.Step]
	if n == nil || n.ID != x.ID {
		return
	}
	n.Status, n.Outputs = factStatus(out), out.Outputs
	n.Final = out.Code == intents.ApprovalRejected
	if !dispatched {
		n.Status = undelivered
	}
}

// nodeResolved notes what an operator says of the order of a node: one that failed did nothing, and
// of one that is done nobody has outputs.
func (p *plan) nodeResolved(x *openOrder, status string) {
	if p.Run == nil || p.nodeOrderID(x.Step) != x.ID {
		return
	}
	n := p.Run.Orders[x.Step]
	n.Status = undelivered
	if status == string(intents.Done) {
		n.Status, n.Outputs = status, p.Run.Graph.Cut(p.step(x.Step).ID, nil, true)
	}
}

// values are what the graph of a run is judged by.
func (p *plan) values() workflows.Values {
	v := workflows.Values{RunID: p.View.PlanID, Inputs: p.Run.Inputs, Nodes: make(map[string]workflows.NodeValue, len(p.View.Steps))}
	for _, s := range p.View.Steps {
		n := workflows.NodeValue{Status: string(s.Status), Begun: s.TaskID != ""}
		if o := p.read(s.Step); o != nil {
			n.Order, n.Outputs = o.ID, o.Outputs
		}
		if s.Status == catalog.StepFailed {
			n.Outputs = p.Run.Graph.Cut(s.ID, nil, false)
		}
		v.Nodes[s.ID] = n
	}
	return v
}

// failed is the node because of which a run can only fail; nil: there is none.
func (p *plan) failedNode() *catalog.StepView {
	for i := range p.View.Steps {
		if s := &p.View.Steps[i]; s.Status == catalog.StepFailed && !p.Run.Graph.Tolerates(s.ID) {
			return s
		}
	}
	return nil
}

// over says whether each node of a run has ended so that it is complete.
func (p *plan) nodesOver() bool {
	for _, s := range p.View.Steps {
		if s.Status != catalog.StepDone && s.Status != catalog.StepSkipped && s.Status != catalog.StepFailed {
			return false
		}
	}
	return p.failedNode() == nil
}

// drives says whether a key may move a plan: runs are the workflow keys', other plans the managers'.
func drives(o Order, p *plan) error {
	if (p.View.Run != nil) != (o.Signer == intents.RoleWorkflow) && (o.Signer == intents.RoleManager || o.Signer == intents.RoleWorkflow) {
		return intents.Refuse(intents.TaskScope, "/sig", "workflow keys move runs, and managers other plans")
	}
	return nil
}

// nodeFailed is the effect of a failed attempt on a node: it is tried again where the
// definition says so, unless what it ordered may have acted once.
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

// mayHaveActed says that no further attempt follows on the last one of a node: an order of it may
// have acted once, or people have turned it down.
func (p *plan) mayHaveActed(s *catalog.StepView) bool {
	if t := p.taskOf(s); t != nil && (t.Kept || t.DryRun) { // nothing is carried out: the next comes to the same
		return true
	}
	if n := p.Run.Orders[s.Step]; n != nil {
		return n.Final || n.Effect == string(catalog.Once) && n.Status != undelivered
	}
	return s.Type == catalog.NodeAgent && slices.ContainsFunc(p.Facts, func(f *fact) bool {
		return f.Step == s.Step && f.Effect == catalog.Once && f.Status != undelivered
	})
}

// tryAgain forgets the order of an attempt that has failed, where another follows.
func (p *plan) tryAgain(s *catalog.StepView) {
	if s.Status == catalog.StepPending {
		delete(p.Run.Orders, s.Step)
	}
}

// nodeFinished is the effect of step.finish on what is known of a node's order.
func (p *plan) nodeFinished(t *task, o Order, a catalog.StepFinish) {
	s := p.step(t.Step)
	switch {
	case p.Run == nil || s == nil || t.Kept:
	case t.DryRun && a.Status == "done":
		p.Run.Orders[s.Step] = &nodeOrder{nodeRef: nodeRef{a.Order, o.Recorded}, Outputs: p.Run.Graph.Cut(s.ID, nil, true)}
	case a.Status == "failed":
		p.tryAgain(s)
	case a.Status == "done" && s.Type == catalog.NodeAgent:
		p.Run.Orders[s.Step] = &nodeOrder{nodeRef: nodeRef{o.Decision.IntentID, o.Recorded}}
		if !o.Erased {
			p.Run.Orders[s.Step].Outputs = p.Run.Graph.Cut(s.ID, repliedOutputs(a.Reply), true)
		}
	}
}

// finishable says whether a task of a node may end as it says: that follows from its order.
func (p *plan) finishable(v *View, o Order, t *task, a catalog.StepFinish) error {
	v.rely(SubjectEffects(o.Tenant, t.Plan, t.Step))
	n, agent := p.Run.Orders[t.Step], t.Agent != ""
	switch {
	case a.Status == "insufficient":
		return illegal("/intent/args/status", "a node is done, failed or held")
	case t.DryRun && (a.Status == "done" || a.Status == "failed"):
		return nil // as the dry run of its order says
	case t.Kept && p.Run.Inputs == nil:
		return nil // what it keeps was erased
	case a.Status == "done" && agent && o.TextSize("reply") == 0:
		return illegal("/intent/args/reply", "the task of an agent's node ends with a reply")
	case a.Status == "done" && !agent && (a.Order == "" || n == nil || n.ID != a.Order || n.Status != string(intents.Done)):
		return illegal("/intent/args/order", "done names the order of the node, which is done")
	case a.Status == "failed" && !agent && n != nil && n.Status == string(intents.Done):
		return illegal("/intent/args/status", "the order of the node is done: so is the node")
	case a.Status == "failed" && !agent && n != nil && n.Status == factOpen && o.Signer == intents.RoleTask:
		return illegal("/intent/args/status", "the order of the node is being carried out")
	}
	return nil
}

// nodeAgain refuses a second order of an attempt, unless the first surely did nothing.
func (p *plan) nodeAgain(s *catalog.StepView, c intents.Context) error {
	if c.Occurrence != s.Attempts {
		return intents.Refuse(intents.TaskScope, "/context/occurrence", fmt.Sprintf("%d attempts of the node have failed, and its order says so", s.Attempts))
	}
	if n := p.Run.Orders[s.Step]; n != nil && n.Status != undelivered {
		return repeated(n.ID)
	}
	return nil
}

// RunScopes are where the nodes of a run have had temporary files.
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
