package workflows

import (
	"fmt"

	"aob.dev/writ/intents"
)

// Verdicts on a pending node.
const (
	Run  = "run"
	Skip = "skip"
	Wait = "wait"
	// Stuck: an edge or an input reads a missing value. The run fails.
	Stuck = "stuck"
)

// Verdict on a pending node.
type Verdict struct {
	Node  string
	Next  string
	Edges []intents.EdgeInput // that enter it, in the graph's order; none while it waits
	Fault *Fault              // of a stuck one
}

// Next returns the verdicts on all pending nodes, in the graph's order, without the digests.
func (g *Graph) Next(v Values) []Verdict {
	r := read(v)
	var out []Verdict
	for _, n := range g.Nodes {
		if v.Nodes[n.ID].pending() {
			out = append(out, g.verdict(n, r, false))
		}
	}
	return out
}

// Ready is the verdict on one node, with the digests. A node that is not pending waits.
func (g *Graph) Ready(node string, v Values) Verdict {
	n := g.Node(node)
	if n == nil || !v.Nodes[node].pending() {
		return Verdict{Node: node, Next: Wait}
	}
	return g.verdict(*n, read(v), true)
}

func (g *Graph) verdict(n Node, r *reading, saw bool) Verdict {
	out := Verdict{Node: n.ID, Next: Wait}
	into := g.indexed().into[n.ID]
	for _, i := range into {
		if !r.Nodes[g.Edges[i].From].final() {
			return out
		}
	}
	out.Next = Skip
	if len(into) == 0 && !n.CutOff {
		out.Next = Run
	}
	for _, i := range into {
		v, err := g.edge(g.Edges[i], r, saw)
		if err != nil {
			fault := &Fault{Pointer: fmt.Sprintf("/edges/%d/condition", i), Reason: "of the node " + n.ID + ": " + err.Error()}
			return Verdict{Node: n.ID, Next: Stuck, Fault: fault}
		}
		if v.Holds {
			out.Next = Run
		}
		out.Edges = append(out.Edges, v)
	}
	if out.Next == Run {
		if _, _, err := g.intent(n, r); err != nil {
			out.Next, out.Fault = Stuck, err
		}
	}
	return out
}

// edge judges an edge whose source is final.
func (g *Graph) edge(e Edge, r *reading, saw bool) (intents.EdgeInput, error) {
	out := intents.EdgeInput{From: e.From}
	switch status := r.Nodes[e.From].Status; {
	case status == Skipped || status == Failed && e.Condition == "":
		return out, nil
	case e.Condition == "":
		out.Holds = true
		return out, nil
	}
	c := g.indexed().conditions[e.Condition]
	if c == nil {
		return out, &Fault{Reason: "the condition cannot be read"}
	}
	seen := c.saw(r)
	if saw {
		out.Saw = seen
	}
	var err error
	out.Holds, err = c.holds(r, seen)
	return out, err
}
