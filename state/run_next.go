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

// next is what a driver of the run can do about its nodes.
func (p *plan) next() (out []catalog.NextNode) {
	if p.Run == nil {
		return nil
	}
	if s := p.failedNode(); s != nil {
		return []catalog.NextNode{{Step: s.Step, Next: catalog.NextStuck, Reason: s.FailureReason}}
	}
	verdicts := p.Run.Graph.Next(p.values())
	for _, s := range p.View.Steps {
		i := slices.IndexFunc(verdicts, func(v workflows.Verdict) bool { return v.Node == s.ID })
		if i < 0 || verdicts[i].Next == workflows.Wait {
			continue
		}
		n := catalog.NextNode{Step: s.Step, Next: verdicts[i].Next, RetryAt: s.RetryAt, TimeoutSec: p.timeout(s)}
		if f := verdicts[i].Fault; f != nil {
			n.Reason = f.Error()
		}
		out = append(out, n)
	}
	return out
}

// timeout is for how many seconds the task of a node may live; 0: as any.
func (p *plan) timeout(s catalog.StepView) int {
	out := p.Run.Graph.Node(s.ID).TimeoutSec
	if _, r := p.agentAt(s.Step); r != nil && (out == 0 || r.Seconds < out) {
		out = r.Seconds
	}
	return out
}

// mayBegin says whether a driver may begin a node now.
func (v *View) mayBegin(o Order, p *plan, s *catalog.StepView, deadline string) error {
	if s.RetryAt != nil && o.Now.Before(*s.RetryAt) {
		return illegal("/intent/args/step", "the node failed a moment ago: it is tried again from "+intents.FormatTime(*s.RetryAt)+" on")
	}
	until, err := time.Parse(time.RFC3339Nano, deadline)
	if limit := p.Run.Graph.Node(s.ID).TimeoutSec; limit > 0 && (err != nil || until.After(o.Now.Add(time.Duration(limit)*time.Second+intents.Leeway))) {
		return illegal("/intent/args/deadline", fmt.Sprintf("the node may take %d s", limit))
	}
	return v.comesTo(o, p, s, workflows.Run)
}

// comesTo says whether a pending node of a run is to be begun, or skipped, as the edges to it say. The
// decision keeps what it made of each edge. Where values of the run were erased, what is
// recorded of its edges is believed.
func (v *View) comesTo(o Order, p *plan, s *catalog.StepView, want string) error {
	if failed := p.failedNode(); failed != nil {
		return illegal("/intent/args/plan_id", "the node "+failed.ID+" has failed: the run can only be closed as failed")
	}
	recorded := o.Position != storage.Nobody || o.Edges != nil
	is := p.Run.Graph.Ready(s.ID, p.values())
	if recorded && p.unknown() {
		is = believed(is, o.Edges)
	}
	edges := make([]intents.FactEdge, len(is.Edges))
	for i, e := range is.Edges {
		edges[i] = intents.FactEdge{From: e.From, Holds: e.Holds, Saw: e.Saw}
	}
	switch {
	case is.Next == workflows.Wait:
		return illegal("/intent/args/step", "a node that leads to it has not ended")
	case is.Next == workflows.Stuck:
		return illegal("/intent/args/step", "the run can only be closed as failed: "+is.Fault.Error())
	case is.Next != want:
		return illegal("/intent/args/step", "what led to the node says: "+is.Next)
	case recorded && !slices.Equal(edges, o.Edges):
		return illegal("/intent/args/step", "decided by other edges than the record gives")
	}
	v.Edges = edges
	return nil
}

// unknown says that values of the run were erased.
func (p *plan) unknown() bool {
	return p.Run.Unknown || p.Run.Inputs == nil || slices.ContainsFunc(p.View.Steps, func(s catalog.StepView) bool {
		o := p.read(s.Step)
		return s.Status == catalog.StepDone && (o == nil || o.Outputs == nil)
	})
}

// believed is what recorded edges make of a node that does not wait.
func believed(is workflows.Verdict, recorded []intents.FactEdge) workflows.Verdict {
	if is.Next == workflows.Wait || len(recorded) == 0 {
		return is
	}
	out := workflows.Verdict{Node: is.Node, Next: workflows.Skip}
	for _, e := range recorded {
		if e.Holds {
			out.Next = workflows.Run
		}
		out.Edges = append(out.Edges, workflows.EdgeVerdict{From: e.From, Holds: e.Holds, Saw: e.Saw})
	}
	return out
}

// order is what the task of a node seals.
func (p *plan) order(s *catalog.StepView) (*catalog.NodeOrder, error) {
	typ, args, err := p.Run.Graph.Order(s.ID, p.values())
	if err != nil {
		return nil, err
	}
	if s.Type == catalog.NodeAgent {
		typ = catalog.NodeAgent
	}
	return &catalog.NodeOrder{Type: typ, Args: args, Occurrence: s.Attempts}, nil
}

// NodeOrder is what the task of a node seals. ok is false of the task of an agent's node, which has an order
// of its own choice, and where values of the run were erased.
func (v *View) NodeOrder(t Task) (order *catalog.NodeOrder, ok bool, err error) {
	v.s.mu.RLock()
	defer v.s.mu.RUnlock()
	p := v.s.plans[t.Tenant+"/"+t.Plan]
	if p == nil || p.Run == nil || p.unknown() {
		return nil, false, nil
	}
	s := p.step(t.Step)
	if s == nil || s.Type == catalog.NodeAgent {
		return nil, false, nil
	}
	order, err = p.order(s)
	return order, err == nil, err
}

// nodeTypes are the types of the orders that nodes are.
var nodeTypes = map[string]string{workflows.Function: typeSkillCall, workflows.Python: "exec_python", workflows.Approval: "approval.ask"}

// NodesOwn says whether an order of the task is, or asks for, what the task's node does: one for an
// executor, or a question to people, which the router answers.
func (t Task) NodesOwn(typ, executor string) bool {
	return t.Node != "" && (executor != catalog.ExecutorRouter || typ == TypeApprovalAsk)
}

// ofNode makes a task that of a node, if it is of a run.
func (p *plan) ofNode(t *Task) {
	if p.Run == nil {
		return
	}
	t.Node = t.Spec.ID
	typ := nodeTypes[p.Run.Graph.Node(t.Node).Type]
	switch {
	case t.Kept || typ == "" && t.Agent == "":
		t.Types = []string{TypeStepFinish}
	case t.Agent == "":
		t.Types = []string{typ, TypeStepFinish}
	}
}

// OutputsOf is what later nodes read of the done order of a node.
func (v *View) OutputsOf(t Task, result json.RawMessage) json.RawMessage {
	v.s.mu.RLock()
	defer v.s.mu.RUnlock()
	p := v.s.plans[t.Tenant+"/"+t.Plan]
	if p == nil || p.Run == nil || p.View.Steps[t.Step-1].Type == catalog.NodeAgent {
		return nil
	}
	return p.Run.Graph.Cut(t.Node, resultOutputs(result), true)
}

// resultOutputs are the outputs that the result of an order gives: what a skill has answered or a script has
// printed; else the result, which is a reference, or what people have said.
func resultOutputs(result json.RawMessage) json.RawMessage {
	var r struct {
		Output json.RawMessage `json:"output"`
	}
	if json.Unmarshal(result, &r) == nil && r.Output != nil {
		return r.Output
	}
	return result
}

// repliedOutputs are those that the reply of an agent gives: the members of an object, or
// the text as reply.
func repliedOutputs(reply string) json.RawMessage {
	var object map[string]json.RawMessage
	if json.Unmarshal([]byte(reply), &object) == nil && object != nil {
		return json.RawMessage(reply)
	}
	raw, _ := json.Marshal(map[string]string{"reply": reply}) // plain data
	return raw
}

// Said is what the graph keeps of what the agent of a node has said by its step.finish.
func Said(g *workflows.Graph, node string, o Order) (json.RawMessage, error) {
	a, err := argsOf[catalog.StepFinish](o)
	return g.Cut(node, repliedOutputs(a.Reply), true), err
}
