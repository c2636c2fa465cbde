package workflows

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"cel.dev/cel-go/cel"

	"aob.dev/writ/intents"
	"aob.dev/writ/schemas"
)

// currentNode in a patch stands for the node that its author works on.
const currentNode = "CURRENT_NODE"

var skillName = regexp.MustCompile(`^[A-Za-z0-9_./:-]{1,128}$`)

// checker finds the faults of a graph. Node and edge give their places.
type checker struct {
	graph      *Graph
	node, edge func(i int) string
	faults     Faults

	// Of a run that is patched: its values, its number of nodes, and its conditions.
	erased   bool
	values   Values
	had      int
	compiled map[string]*condition

	byID    map[string]int
	before  []set                 // by number of the node: its predecessors
	outputs []map[string]struct{} // by number of the node: pointers that are read
}

// set of nodes, by number.
type set [(MaxNodes + 63) / 64]uint64

func (s *set) add(i int)      { s[i/64] |= 1 << (i % 64) }
func (s *set) has(i int) bool { return s[i/64]&(1<<(i%64)) != 0 }
func (s *set) join(o set) {
	for i := range s {
		s[i] |= o[i]
	}
}

// removal is the place of faults in the graph before a patch.
const removal = "/remove_edges"

// inside is a pointer into a node or an edge.
func inside(at, pointer string) string {
	if at == removal {
		return at
	}
	return at + pointer
}

func (c *checker) fault(pointer, format string, args ...any) {
	c.faults = append(c.faults, Fault{Pointer: pointer, Reason: fmt.Sprintf(format, args...)})
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// plain checks a node by itself, and makes its JSON canonical.
func (c *checker) plain(i int) {
	n, at := &c.graph.Nodes[i], c.node(i)
	n.Outputs, n.CutOff = nil, false
	if n.ID == currentNode {
		c.fault(at+"/id", "stands for the node of a patch: choose another")
	}
	switch n.Type {
	case Function:
		if !skillName.MatchString(n.Fn) {
			c.fault(at+"/fn", "is no name of a skill: write <server>.<tool>, or the name of a tool")
		}
	case Python:
		if n.Fn == "" || strings.HasPrefix(n.Fn, "cas://") {
			c.fault(at+"/fn", "is no script: write its text")
		}
	case Agent:
		if n.Fn == "" {
			c.fault(at+"/fn", "names no agent")
		}
	case Approval:
		if n.Fn != "" {
			c.fault(at+"/fn", "is nothing that an approval has: leave it out")
		}
	}
	for _, raw := range []struct {
		name string
		text *[]byte
	}{{"/inputs", (*[]byte)(&n.Inputs)}, {"/from", (*[]byte)(&n.From)}} {
		if *raw.text == nil {
			continue
		}
		text, err := intents.Canonical(*raw.text)
		if err != nil {
			c.fault(at+raw.name, "is no I-JSON: %v", err)
			return
		}
		*raw.text = text
	}
	several := n.From != nil && n.From[0] == '{'
	switch {
	case n.From == nil:
	case n.Inputs != nil:
		c.fault(at+"/from", "does not go with inputs: leave one of them out")
	case n.Type != Function && n.Type != Python:
		c.fault(at+"/from", "is for nodes of type function and python")
	case several && n.Type == Function:
		c.fault(at+"/from", "is one reference: several are for python")
	}
}

// all checks the graph as a whole, and computes which outputs are read.
func (c *checker) all() {
	g := c.graph
	c.byID = map[string]int{}
	for i, n := range g.Nodes {
		if first, ok := c.byID[n.ID]; ok {
			c.fault(c.node(i)+"/id", "is the id of node %d, too: choose another", first)
			return
		}
		c.byID[n.ID] = i
	}
	if !c.acyclic() {
		return
	}
	c.outputs = make([]map[string]struct{}, len(g.Nodes))
	for i := range c.outputs {
		c.outputs[i] = map[string]struct{}{}
		for _, pointer := range g.Nodes[i].Outputs {
			c.outputs[i][pointer] = struct{}{}
		}
	}
	for i, n := range g.Nodes {
		if !c.values.Nodes[n.ID].begun() {
			c.reads(i)
		}
	}
	compiled := maps.Clone(c.compiled)
	if compiled == nil {
		compiled = map[string]*condition{}
	}
	types := (&index{types: inputTypes(g.Inputs)}).typeOf
	for i, e := range g.Edges {
		if e.Condition != "" && !c.values.Nodes[e.To].begun() {
			c.condition(i, compiled, types)
		}
	}
	c.costs(compiled)
	for i := range g.Nodes {
		g.Nodes[i].Outputs = nil
		for pointer := range c.outputs[i] {
			g.Nodes[i].Outputs = append(g.Nodes[i].Outputs, pointer)
		}
		slices.Sort(g.Nodes[i].Outputs)
	}
	if len(c.faults) == 0 {
		g.x = g.newIndex(compiled)
	}
}

// acyclic checks that each edge joins two nodes and none closes a cycle, and computes the
// predecessors of each node.
func (c *checker) acyclic() bool {
	g := c.graph
	next := make([][]int, len(g.Nodes))
	seen := map[[2]int]bool{}
	for i, e := range g.Edges {
		from, ok := c.byID[e.From]
		if !ok {
			c.fault(c.edge(i)+"/from", "there is no node %s", e.From)
			continue
		}
		to, ok := c.byID[e.To]
		if !ok {
			c.fault(c.edge(i)+"/to", "there is no node %s", e.To)
			continue
		}
		if seen[[2]int{from, to}] {
			c.fault(c.edge(i), "leads as another edge does: make one condition of both, with ||")
		} else if from == to || reaches(next, to, from) {
			c.fault(c.edge(i), "closes a circle: %s comes before %s already", e.To, e.From)
		}
		if len(c.faults) > 0 {
			return false
		}
		seen[[2]int{from, to}] = true
		next[from] = append(next[from], to)
	}
	c.before = make([]set, len(g.Nodes))
	waits := make([]int, len(g.Nodes))
	for _, list := range next {
		for _, to := range list {
			waits[to]++
		}
	}
	var ready []int
	for i, n := range waits {
		if n == 0 {
			ready = append(ready, i)
		}
	}
	for len(ready) > 0 {
		i := ready[0]
		ready = ready[1:]
		for _, to := range next[i] {
			c.before[to].join(c.before[i])
			c.before[to].add(i)
			if waits[to]--; waits[to] == 0 {
				ready = append(ready, to)
			}
		}
	}
	return len(c.faults) == 0
}

func reaches(next [][]int, from, to int) bool {
	seen := make([]bool, len(next))
	todo := []int{from}
	for len(todo) > 0 {
		i := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if i == to {
			return true
		}
		if !seen[i] {
			seen[i] = true
			todo = append(todo, next[i]...)
		}
	}
	return false
}

// reads checks the references of a node's templates, and the literal part of its intent.
func (c *checker) reads(i int) {
	n, at := c.graph.Nodes[i], c.node(i)
	open := map[string]bool{} // the values with templates, by pointer into the node
	args, _ := n.args(func(v any, pointer string) (any, *Fault) {
		return templates(v, pointer, func(s, pointer string) (any, *Fault) {
			list, wrong := parts(s)
			if wrong != "" {
				c.fault(inside(at, pointer), "%s", wrong)
			}
			for _, p := range list {
				if p.path != nil {
					open[pointer] = true
					c.path(*p.path, i, inside(at, pointer))
				}
			}
			return s, nil
		})
	})
	if len(c.faults) > 0 || i < c.had || c.erased {
		return
	}
	if n.Type == Agent {
		if object, _ := args.(map[string]any); object["task"] == nil {
			c.fault(at+"/inputs/task", "is required: it says what the agent shall do")
		}
		return
	}
	schema, err := schemas.Lookup(schemas.Base + "intents/" + byID[n.Type] + ".json")
	if err != nil {
		return
	}
	text, err := canonical(args)
	if err != nil {
		c.fault(at+"/inputs", "%v", err)
		return
	}
	for _, v := range schema.ValidateBytes(text) {
		if pointer := n.pointer(v.Pointer); !open[pointer] {
			c.fault(at+pointer, "%s", v.Reason)
		}
	}
}

// pointer converts a pointer into the arguments of the node's intent to one into the node.
func (n Node) pointer(args string) string {
	switch {
	case n.Type == Approval:
		return "/inputs" + args
	case strings.HasPrefix(args, "/inputs"):
		return "/from" + strings.TrimPrefix(args, "/inputs")
	case strings.HasPrefix(args, "/input"):
		return "/inputs" + strings.TrimPrefix(args, "/input")
	case strings.HasPrefix(args, "/skill"), strings.HasPrefix(args, "/script"):
		return "/fn"
	}
	return args
}

// path checks that the node of a number can read a value, and records the reference.
func (c *checker) path(p path, reader int, at string) {
	switch p.root {
	case rootInputs:
		name, _ := p.tokens[0].(string)
		if inputTypes(c.graph.Inputs)[name] == nil {
			c.fault(at, "there is no input %s: add it to the properties of inputs", name)
		}
	case partOutputs, partIntent:
		i, ok := c.byID[p.node]
		switch {
		case !ok:
			c.fault(at, "there is no node %s", p.node)
			return
		case !c.before[reader].has(i):
			c.fault(at, "the node %s does not come before %s", p.node, c.graph.Nodes[reader].ID)
			return
		case p.root == partIntent && c.graph.Nodes[i].Type == Agent:
			c.fault(at, "the node %s is an agent, which is no intent", p.node)
			return
		case p.root == partIntent:
			return
		}
		kept := p.kept()
		if c.values.Nodes[p.node].final() && kept != "/"+success && !slices.Contains(c.graph.Nodes[i].Outputs, kept) {
			c.fault(at, "the node %s has ended, and its outcome keeps no %s", p.node, kept)
		}
		c.outputs[i][kept] = struct{}{}
	}
}

// condition of an edge must compile, and read only what comes before the edge's target.
func (c *checker) condition(i int, compiled map[string]*condition, types func(path) *cel.Type) {
	e, at := c.graph.Edges[i], inside(c.edge(i), "/condition")
	x := compiled[e.Condition]
	if x == nil {
		var wrong string
		if x, wrong = compile(e.Condition, types); wrong != "" {
			c.fault(at, "%s", wrong)
			return
		}
		compiled[e.Condition] = x
	}
	for _, p := range x.paths {
		c.path(p, c.byID[e.To], at)
	}
}

// costs refuses the edge from which on the total cost of the conditions may be too high. A run
// evaluates each text once, so each counts once, whatever the state of the run.
func (c *checker) costs(compiled map[string]*condition) {
	var sum uint64
	var edges []int // the first with each text
	seen := map[string]bool{"": true}
	of := func(i int) uint64 { return compiled[c.graph.Edges[i].Condition].cost }
	for i, e := range c.graph.Edges {
		if seen[e.Condition] || compiled[e.Condition] == nil {
			continue
		}
		seen[e.Condition] = true
		edges = append(edges, i)
		if sum += of(i); sum <= maxCosts {
			continue
		}
		slices.SortStableFunc(edges, func(a, b int) int { return cmp.Compare(of(b), of(a)) })
		var most []string
		for _, i := range edges[:min(3, len(edges))] {
			most = append(most, fmt.Sprintf("%s to %s (%d)", c.graph.Edges[i].From, c.graph.Edges[i].To, of(i)))
		}
		c.fault(inside(c.edge(i), "/condition"), "the conditions of the graph may cost %d up to this one, more than %d: use fewer loops; those cost most that lead from %s", sum, maxCosts, strings.Join(most, ", "))
		return
	}
}
