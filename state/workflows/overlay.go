package workflows

import (
	"fmt"
	"slices"
)

// Patch adds to the graph of one run.
type Patch struct {
	PatchVersion  string     `json:"patch_version"`
	AddNodes      []Node     `json:"add_nodes"`
	AddEdges      []Edge     `json:"add_edges"`
	RemoveEdges   []EdgeName `json:"remove_edges,omitempty"`
	Justification string     `json:"justification"`
	Erased        bool       `json:"-"` // inputs of its nodes, and their from, were erased: the patch is taken as given
}

// EdgeName names an edge by its ends.
type EdgeName struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// Overlay is the graph with a patch over it, for a run with these values. CURRENT_NODE stands
// for the node at; if at is empty, for the one that runs. Edges may leave a node that has begun,
// and never enter it. current is that node, if the patch names it by CURRENT_NODE. The error is
// Faults, with pointers into the patch.
func (g *Graph) Overlay(p Patch, at string, v Values) (next *Graph, current string, err error) {
	c := &checker{erased: p.Erased, values: v, had: len(g.Nodes), compiled: g.indexed().conditions}
	if len(p.AddNodes)+len(p.AddEdges)+len(p.RemoveEdges) == 0 {
		c.fault("", "changes nothing")
	}
	if len(g.Nodes)+len(p.AddNodes) > MaxNodes {
		c.fault("/add_nodes", "the run would have more than %d nodes", MaxNodes)
	}
	named := func(id *string, pointer string) {
		if *id != currentNode {
			return
		}
		var wrong string
		if current, wrong = g.current(at, v); wrong != "" {
			c.fault(pointer, "%s", wrong)
		}
		*id = current
	}
	edges := slices.Clone(g.Edges)
	for i, e := range p.RemoveEdges {
		pointer := fmt.Sprintf("%s/%d", removal, i)
		named(&e.From, pointer+"/from")
		named(&e.To, pointer+"/to")
		n := slices.IndexFunc(edges, func(x Edge) bool { return x.From == e.From && x.To == e.To })
		switch {
		case n < 0:
			c.fault(pointer, "there is no edge from %s to %s", e.From, e.To)
		case v.Nodes[e.To].begun():
			c.fault(pointer+"/to", "the node %s has begun: no edge that enters it changes any more", e.To)
		default:
			edges = slices.Delete(edges, n, n+1)
		}
	}
	kept := len(edges)
	for i, e := range p.AddEdges {
		pointer := fmt.Sprintf("/add_edges/%d", i)
		named(&e.From, pointer+"/from")
		named(&e.To, pointer+"/to")
		if v.Nodes[e.To].begun() {
			c.fault(pointer+"/to", "the node %s has begun: edges may leave it, never enter it", e.To)
		}
		edges = append(edges, e)
	}
	if len(edges) > maxEdges {
		c.fault("/add_edges", "the run would have more than %d edges", maxEdges)
	}
	c.graph = &Graph{
		WorkflowID: g.WorkflowID, Version: g.Version, Digest: g.Digest, CEL: g.CEL, MaxDays: g.MaxDays, Inputs: g.Inputs,
		Nodes: append(slices.Clone(g.Nodes), p.AddNodes...), Edges: edges,
	}
	c.node = added("/add_nodes", c.had)
	c.edge = added("/add_edges", kept)
	for i := c.had; len(c.faults) == 0 && i < len(c.graph.Nodes); i++ {
		c.plain(i)
	}
	if len(c.faults) == 0 {
		c.cutOff(g)
		c.all()
	}
	if len(c.faults) > 0 {
		return nil, "", c.faults
	}
	return c.graph, current, nil
}

// RewiredNodes are the nodes whose incoming edges differ in the next graph, sorted.
func (g *Graph) RewiredNodes(next *Graph) []string {
	out := []string{}
	for _, pair := range [][2]*Graph{{g, next}, {next, g}} {
		for _, e := range pair[0].Edges {
			if g.Node(e.To) != nil && !slices.Contains(pair[1].Edges, e) {
				out = append(out, e.To)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// added returns the place of each element of a list that had `had` elements before: those can be
// wrong only by the removal of edges.
func added(list string, had int) func(i int) string {
	return func(i int) string {
		if i < had {
			return removal
		}
		return fmt.Sprintf("%s/%d", list, i-had)
	}
}

// current is the node that CURRENT_NODE stands for.
func (g *Graph) current(at string, v Values) (id, wrong string) {
	if at != "" {
		if g.Node(at) == nil {
			return "", "the run has no node " + at + ", which context.node_id names"
		}
		return at, ""
	}
	var running []string
	for _, n := range g.Nodes {
		if v.Nodes[n.ID].Status == Running {
			running = append(running, n.ID)
		}
	}
	if len(running) != 1 {
		return "", fmt.Sprintf("%d nodes run: name one in context.node_id, or write its id here", len(running))
	}
	return running[0], ""
}

// cutOff marks the nodes that have lost their last incoming edge, and unmarks those that have
// one again.
func (c *checker) cutOff(before *Graph) {
	entered := map[string]bool{}
	for _, e := range c.graph.Edges {
		entered[e.To] = true
	}
	for i := range c.had {
		n := &c.graph.Nodes[i]
		had := n.CutOff || len(before.indexed().into[n.ID]) > 0
		n.CutOff = had && !entered[n.ID] && !c.values.Nodes[n.ID].begun()
	}
}
