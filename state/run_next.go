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

// timeout is the maximum life of a node's task in seconds; 0: the general one.
func (p *plan) timeout(s catalog.StepView) int {
	out := p.Run.Graph.Node(s.ID).TimeoutSec
	if _, r := p.agentAt(s.Step); r != nil && (out == 0 || r.Seconds < out) {
		out = r.Seconds
	}
	return out
}

// mayBegin checks whether a driver may begin a node now.
func (v *View) mayBegin(o Intent, p *plan, s *catalog.StepView, deadline string) error {
	if s.RetryAt != nil && o.Now.Before(*s.RetryAt) {
		return illegal("/intent/args/step", "the node failed a moment ago: it is tried again from "+intents.FormatTime(*s.RetryAt)+" on")
	}
	until, err := time.Parse(time.RFC3339Nano, deadline)
	if limit := p.Run.Graph.Node(s.ID).TimeoutSec; limit > 0 && (err != nil || until.After(o.Now.Add(time.Duration(limit)*time.Second+intents.Leeway))) {
		return illegal("/intent/args/deadline", fmt.Sprintf("the node may take %d s", limit))
	}
	return v.comesTo(o, p, s, workflows.Run)
}

// comesTo checks that the edges to a pending node of a run require that it begins, or is
// skipped. The decision records its verdict on each edge. If values of the run were erased, the
// recorded verdicts on its edges are taken as given.
func (v *View) comesTo(o Intent, p *plan, s *catalog.StepView, want string) error {
	if failed := p.failedNode(); failed != nil {
		return illegal("/intent/args/plan_id", "the node "+failed.ID+" has failed: the run can only be closed as failed")
	}
	recorded := o.Position != storage.NoPosition || o.Edges != nil
	is := p.Run.Graph.Ready(s.ID, p.values())
	if recorded && p.unknown() {
		is = believed(is, o.Edges)
	}
	switch {
	case is.Next == workflows.Wait:
		return illegal("/intent/args/step", "a node that leads to it has not ended")
	case is.Next == workflows.Stuck:
		return illegal("/intent/args/step", "the run can only be closed as failed: "+is.Fault.Error())
	case is.Next != want:
		return illegal("/intent/args/step", "what led to the node says: "+is.Next)
	case recorded && !slices.Equal(is.Edges, o.Edges):
		return illegal("/intent/args/step", "decided by other edges than the record gives")
	}
	v.Edges = is.Edges
	return nil
}

// unknown reports that values of the run were erased.
func (p *plan) unknown() bool {
	return p.Run.Unknown || p.Run.Inputs == nil || slices.ContainsFunc(p.View.Steps, func(s catalog.StepView) bool {
		o := p.read(s.Step)
		return s.Status == catalog.StepDone && (o == nil || o.Outputs == nil)
	})
}

// believed is the verdict that recorded edges give on a node that does not wait.
func believed(is workflows.Verdict, recorded []intents.EdgeInput) workflows.Verdict {
	if is.Next == workflows.Wait || len(recorded) == 0 {
		return is
	}
	out := workflows.Verdict{Node: is.Node, Next: workflows.Skip, Edges: recorded}
	for _, e := range recorded {
		if e.Holds {
			out.Next = workflows.Run
		}
	}
	return out
}

// intent is what the task of a node signs.
func (p *plan) intent(s *catalog.StepView) (*catalog.NodeIntent, error) {
	typ, args, err := p.Run.Graph.Intent(s.ID, p.values())
	if err != nil {
		return nil, err
	}
	if s.Type == catalog.NodeAgent {
		typ = catalog.NodeAgent
	}
	return &catalog.NodeIntent{Type: typ, Args: args, Occurrence: s.Attempts}, nil
}

// NodeIntent is what the task of a node signs. ok is false for the task of an agent's node,
// which chooses its own intents, and if values of the run were erased.
func (v *View) NodeIntent(t Task) (intent *catalog.NodeIntent, ok bool, err error) {
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
	intent, err = p.intent(s)
	return intent, err == nil, err
}

// nodeTypes are the intent types of nodes.
var nodeTypes = map[string]string{workflows.Function: TypeSkillCall, workflows.Python: "exec_python", workflows.Approval: "approval.ask"}

// NodesOwn reports whether an intent of the task is, or asks for, what the task's node does: one
// for an executor, or a question to people, which the router answers.
func (t Task) NodesOwn(typ, executor string) bool {
	return t.Node != "" && (executor != catalog.ExecutorRouter || typ == TypeApprovalAsk)
}

// ofNode makes a task that of a node, if it belongs to a run.
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

// OutputsOf returns what later nodes read of the done intent of a node.
func (v *View) OutputsOf(t Task, result json.RawMessage) json.RawMessage {
	v.s.mu.RLock()
	defer v.s.mu.RUnlock()
	p := v.s.plans[t.Tenant+"/"+t.Plan]
	if p == nil || p.Run == nil || p.View.Steps[t.Step-1].Type == catalog.NodeAgent {
		return nil
	}
	return p.Run.Graph.Cut(t.Node, resultOutputs(result), true)
}

// resultOutputs are the outputs in the result of an intent: the answer of a skill or the output
// of a script; otherwise the result, which is a reference or the answer of people.
func resultOutputs(result json.RawMessage) json.RawMessage {
	var r struct {
		Output json.RawMessage `json:"output"`
	}
	if json.Unmarshal(result, &r) == nil && r.Output != nil {
		return r.Output
	}
	return result
}

// repliedOutputs are the outputs in the reply of an agent: the members of an object, or the text
// as reply.
func repliedOutputs(reply string) json.RawMessage {
	var object map[string]json.RawMessage
	if json.Unmarshal([]byte(reply), &object) == nil && object != nil {
		return json.RawMessage(reply)
	}
	raw, _ := json.Marshal(map[string]string{"reply": reply}) // always encodes
	return raw
}

// NodeOutput is what the graph retains of the agent's reply in a node's step.finish.
func NodeOutput(g *workflows.Graph, node string, o Intent) (json.RawMessage, error) {
	a, err := ArgsOf[catalog.StepFinish](o)
	return g.Cut(node, repliedOutputs(a.Reply), true), err
}
