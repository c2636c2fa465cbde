package graphs

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"aob.dev/writ/intents/catalog"
)

// effects of the skills that nodes call, by skill.
var effects = map[string]catalog.Effect{"s.pure": catalog.Pure, "s.idem": catalog.Idempotent, "s.once": catalog.Once}

var skills = []string{"s.pure", "s.idem", "s.once"}

// edge of a random graph, and the nodes that its condition reads: its source alone.
type edge struct {
	from      int
	condition string
	holds     func(n *node) verdict
}

// verdict of the oracle on a condition.
type verdict int

const (
	no verdict = iota
	yes
	stuck
)

func truth(b bool) verdict {
	if b {
		return yes
	}
	return no
}

// node of a random graph, and what it comes to once it runs.
type node struct {
	skill string
	into  []edge
	retry int
	reads int // the node whose output its input has; -1: none

	fails int // attempts; those after them are done
	says  bool
	n     int

	status string // by the oracle
}

// failed reports whether the node finally fails when it runs.
func (n *node) failed() bool { return n.fails > n.retry }

// attempts of the node when it runs.
func (n *node) attempts() int { return min(n.fails, n.retry) + 1 }

// graph is a random workflow with the fates of its nodes.
type graph struct {
	seed  uint64
	nodes []*node
	// loose: its run may fail, by a node that fails or by a condition that reads what is not there.
	loose bool
}

// sizeOf a graph: most are small, some have up to two hundred nodes.
func sizeOf(seed uint64, r *rand.Rand) int {
	switch {
	case seed%125 == 124:
		return 150 + r.IntN(51)
	case seed%50 == 49:
		return 30 + r.IntN(31)
	}
	return 2 + r.IntN(11)
}

// graphOf is the graph of a seed.
func graphOf(seed uint64) *graph {
	r := rand.New(rand.NewPCG(seed, 15)) // the same again
	g := &graph{seed: seed, loose: seed%6 == 5}
	leads := map[int]bool{} // nodes with a conditional edge that leaves them
	for i := range sizeOf(seed, r) {
		n := &node{skill: skills[r.IntN(3)], retry: r.IntN(2), reads: -1, says: r.IntN(8) > 0, n: r.IntN(10)}
		switch r.IntN(6) {
		case 0:
			n.fails = 9
		case 1:
			n.fails = 1
		}
		if n.skill == "s.once" && n.fails > 0 { // what was sent is not sent again
			n.fails, n.retry = 9, 0
		}
		for from := max(0, i-9); from < i; from++ {
			if r.IntN(4) > 0 {
				continue
			}
			e := g.edge(r, from)
			leads[from] = leads[from] || e.condition != ""
			n.into = append(n.into, e)
		}
		if len(n.into) == 1 && n.into[0].holds != nil && r.IntN(2) == 0 && (strings.HasSuffix(n.into[0].condition, "true") || strings.Contains(n.into[0].condition, "&&")) {
			n.reads = n.into[0].from // which is done when the node runs
		}
		g.nodes = append(g.nodes, n)
	}
	for i, n := range g.nodes {
		if n.failed() && !leads[i] && !g.loose {
			n.fails = 0
		}
	}
	return g
}

// edge from a node, three of four times with a condition.
func (g *graph) edge(r *rand.Rand, from int) edge {
	path, k := fmt.Sprintf("nodes.n%d.outputs", from), r.IntN(10)
	switch c := r.IntN(6); {
	case c == 0:
		return edge{from, path + ".success == true", func(n *node) verdict { return truth(n.succeeds()) }}
	case c == 1:
		return edge{from, "${" + path + ".success == false}", func(n *node) verdict { return truth(!n.succeeds()) }}
	case c == 2:
		return edge{from, fmt.Sprintf("%s.success && %s.n > %d", path, path, k), func(n *node) verdict { return truth(n.succeeds() && n.n > k) }}
	case c == 3:
		return edge{from, fmt.Sprintf("!%s.success || %s.n %% 2 == 0", path, path), func(n *node) verdict { return truth(!n.succeeds() || n.n%2 == 0) }}
	case c == 4 && g.loose:
		return edge{from, fmt.Sprintf("%s.n <= %d", path, k), func(n *node) verdict {
			if n.failed() {
				return stuck
			}
			return truth(n.n <= k)
		}}
	}
	return edge{from: from}
}

func (n *node) succeeds() bool { return !n.failed() && n.says }

// judge is the oracle: it goes through the nodes once, one after the other, and knows nothing
// of workflows. It returns the end of the run.
func (g *graph) judge() catalog.PlanStatus {
	ends := catalog.PlanComplete
	leads := map[int]bool{}
	for _, n := range g.nodes {
		for _, e := range n.into {
			leads[e.from] = leads[e.from] || e.holds != nil
		}
	}
	for i, n := range g.nodes {
		out, waits := no, false
		for _, e := range n.into {
			from := g.nodes[e.from]
			switch {
			case from.status == "":
				waits = true
			case out == stuck || from.status == "skipped" || from.status == "failed" && e.holds == nil:
			case e.holds == nil:
				out = yes
			default:
				if v := e.holds(from); v != no {
					out = v
				}
			}
		}
		switch {
		case waits:
		case out == stuck:
			ends = catalog.PlanFailed
		case out == no && len(n.into) > 0:
			n.status = "skipped"
		case n.failed():
			if n.status = "failed"; !leads[i] {
				ends = catalog.PlanFailed
			}
		default:
			n.status = "done"
		}
	}
	return ends
}

// text of the workflow.
func (g *graph) text() string {
	var nodes, edges strings.Builder
	for i, n := range g.nodes {
		inputs := fmt.Sprintf("n: %d", i)
		if n.reads >= 0 {
			inputs += fmt.Sprintf(`, got: "${nodes.n%d.outputs.n}"`, n.reads)
		}
		retry := ""
		if n.retry > 0 {
			retry = fmt.Sprintf(", retry: {max: %d, backoff_sec: 1}", n.retry)
		}
		fmt.Fprintf(&nodes, "  - {id: n%d, type: function, fn: %s, inputs: {%s}%s}\n", i, n.skill, inputs, retry)
		for _, e := range n.into {
			condition := ""
			if e.condition != "" {
				condition = fmt.Sprintf(", condition: %q", e.condition)
			}
			fmt.Fprintf(&edges, "  - {from: n%d, to: n%d%s}\n", e.from, i, condition)
		}
	}
	text := "workflow_id: random\nversion: 1.0.0\ndescription: Anything.\nmax_days: 3\nnodes:\n" + nodes.String()
	if edges.Len() > 0 {
		text += "edges:\n" + edges.String()
	}
	return text
}
