package workflows

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"
)

// The oracle: the result of a graph whose nodes are visited once, in order. It knows nothing of
// paths, of CEL or of the package's algorithm.

// fate is the outcome of a node, if it runs.
type fate struct {
	fails bool
	n     int
}

// three is a truth value: true, false or unknown.
type three int

const (
	no three = iota
	yes
	unknown
)

// term is a condition as text, with the oracle's evaluation.
type term struct {
	text  string
	judge func(status map[string]string, fates map[string]fate) three
}

func truth(b bool) three {
	if b {
		return yes
	}
	return no
}

// randomTerm reads some of the nodes.
func randomTerm(r *rand.Rand, nodes []string, depth int) term {
	if depth > 0 && r.IntN(2) == 0 {
		a, b := randomTerm(r, nodes, depth-1), randomTerm(r, nodes, depth-1)
		switch r.IntN(3) {
		case 0:
			return term{"(" + a.text + " && " + b.text + ")", func(s map[string]string, f map[string]fate) three {
				x, y := a.judge(s, f), b.judge(s, f)
				if x == no || y == no {
					return no
				}
				return max(x, y) // unknown is the highest
			}}
		case 1:
			return term{"(" + a.text + " || " + b.text + ")", func(s map[string]string, f map[string]fate) three {
				x, y := a.judge(s, f), b.judge(s, f)
				if x == yes || y == yes {
					return yes
				}
				return max(x, y)
			}}
		}
		return term{"!" + a.text, func(s map[string]string, f map[string]fate) three {
			if x := a.judge(s, f); x != unknown {
				return 1 - x
			}
			return unknown
		}}
	}
	id, k := nodes[r.IntN(len(nodes))], r.IntN(10)
	if r.IntN(2) == 0 {
		return term{fmt.Sprintf("nodes[%q].outputs.success", id), func(s map[string]string, _ map[string]fate) three {
			if s[id] == Skipped {
				return unknown
			}
			return truth(s[id] == Done)
		}}
	}
	return term{fmt.Sprintf("(nodes[%q].outputs.n > %d)", id, k), func(s map[string]string, f map[string]fate) three {
		if s[id] != Done {
			return unknown
		}
		return truth(f[id].n > k)
	}}
}

// randomRun is a graph with the fates of its nodes.
type randomRun struct {
	graph Graph
	fates map[string]fate
	terms map[string]*term // by "from to"; nil: no condition
	reads map[string]string
}

func newRandomRun(r *rand.Rand, size int) *randomRun {
	x := &randomRun{fates: map[string]fate{}, terms: map[string]*term{}, reads: map[string]string{}}
	before := map[string][]string{}
	for i := range size {
		id := fmt.Sprintf("n%d", i)
		n := Node{ID: id, Type: Function, Fn: "s.t"}
		known := map[string]bool{}
		var froms []int
		for range r.IntN(4) {
			if i > 0 {
				froms = append(froms, max(0, i-1-r.IntN(8)))
			}
		}
		for _, j := range froms {
			from := fmt.Sprintf("n%d", j)
			if x.has(from, id) {
				continue
			}
			for _, b := range append([]string{from}, before[from]...) {
				if !known[b] {
					known[b] = true
					before[id] = append(before[id], b)
				}
			}
			x.terms[from+" "+id] = nil
			x.graph.Edges = append(x.graph.Edges, Edge{From: from, To: id})
		}
		for e := range x.graph.Edges {
			edge := &x.graph.Edges[e]
			if edge.To == id && r.IntN(3) > 0 {
				t := randomTerm(r, before[id][:min(len(before[id]), 6)], 2)
				x.terms[edge.From+" "+id], edge.Condition = &t, t.text
				if r.IntN(2) == 0 {
					edge.Condition = "${" + t.text + "}"
				}
			}
		}
		if len(before[id]) > 0 && r.IntN(4) == 0 {
			of := before[id][r.IntN(len(before[id]))]
			x.reads[id] = of
			n.Inputs = json.RawMessage(fmt.Sprintf(`{"n":"${nodes.%s.outputs.n}","text":"${run_id}: ${nodes.%s.outputs.n}"}`, of, of))
		}
		x.fates[id] = fate{r.IntN(4) == 0, r.IntN(10)}
		x.graph.Nodes = append(x.graph.Nodes, n)
	}
	return x
}

func (x *randomRun) has(from, to string) bool { _, ok := x.terms[from+" "+to]; return ok }

// oracle computes the result of each node; stuck nodes and their successors stay as they are.
func (x *randomRun) oracle() map[string]string {
	status := map[string]string{}
	for _, n := range x.graph.Nodes {
		verdict, edges := Skip, 0
		for _, e := range x.graph.Edges {
			if e.To != n.ID {
				continue
			}
			edges++
			from := status[e.From]
			t := x.terms[e.From+" "+n.ID]
			switch {
			case from == "" || from == Stuck:
				verdict = Wait
			case verdict == Wait || from == Skipped || from == Failed && t == nil:
			case t == nil:
				if verdict == Skip {
					verdict = Run
				}
			default:
				switch t.judge(status, x.fates) {
				case no:
				case yes:
					if verdict == Skip {
						verdict = Run
					}
				case unknown:
					verdict = Stuck
				}
			}
		}
		if edges == 0 {
			verdict = Run
		}
		if of := x.reads[n.ID]; verdict == Run && of != "" && status[of] != Done {
			verdict = Stuck
		}
		switch verdict {
		case Skip:
			status[n.ID] = Skipped
		case Stuck:
			status[n.ID] = Stuck
		case Run:
			status[n.ID] = Done
			if x.fates[n.ID].fails {
				status[n.ID] = Failed
			}
		}
	}
	return status
}

// run advances the graph until nothing can advance any more, one node at a time.
func (x *randomRun) run(t *testing.T, r *rand.Rand, g *Graph) map[string]string {
	t.Helper()
	v := Values{RunID: "plan_r", Inputs: json.RawMessage(`{}`), Nodes: map[string]NodeValue{}}
	status := map[string]string{}
	for {
		var can []Verdict
		for _, n := range g.Next(v) {
			if n.Next == Stuck {
				status[n.Node] = Stuck
			}
			if n.Next == Run || n.Next == Skip {
				can = append(can, n)
			}
		}
		if len(can) == 0 {
			return status
		}
		for range 1 + r.IntN(len(can)) { // like several drivers, each on the values that it has read
			i := r.IntN(len(can))
			n := can[i]
			can = append(can[:i], can[i+1:]...)
			if again := g.Ready(n.Node, v); again.Next != n.Next {
				t.Fatalf("%s: %s, then %s", n.Node, n.Next, again.Next)
			}
			value := NodeValue{Status: Skipped}
			if n.Next == Run {
				fails := x.fates[n.Node].fails
				outputs := fmt.Sprintf(`{"n":%d,"unread":[true]}`, x.fates[n.Node].n)
				value = NodeValue{Done, true, "sha256:" + n.Node, g.Cut(n.Node, json.RawMessage(outputs), !fails)}
				if fails {
					value.Status = Failed
				}
				x.signed(t, g, n.Node, v)
			}
			v.Nodes[n.Node], status[n.Node] = value, value.Status
		}
	}
}

// signed checks the arguments of a node's intent.
func (x *randomRun) signed(t *testing.T, g *Graph, id string, v Values) {
	t.Helper()
	typ, args, err := g.Intent(id, v)
	want := `{"skill":"s.t"}`
	if of := x.reads[id]; of != "" {
		want = fmt.Sprintf(`{"input":{"n":%d,"text":"plan_r: %d"},"skill":"s.t"}`, x.fates[of].n, x.fates[of].n)
	}
	if err != nil || typ != "skill.call" || string(args) != want {
		t.Fatalf("%s: %s %s %v, want %s", id, typ, args, err, want)
	}
}

// TestRandomWorkflows: for any graph and any order in which its nodes end, each node has the
// oracle's result. A third of the graphs comes in two parts, the second as a patch.
func TestRandomWorkflows(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 1))
	counts := map[string]int{}
	for i := range 500 {
		size := 2 + r.IntN(25)
		if i%50 == 0 {
			size = 150 + r.IntN(51)
		}
		x := newRandomRun(r, size)
		g, err := x.parsed(i%3 == 0)
		if err != nil {
			t.Fatalf("seed %d, graph %d: %v", seed, i, err)
		}
		want := x.oracle()
		got := x.run(t, r, g)
		for _, n := range g.Nodes {
			if counts[want[n.ID]]++; got[n.ID] != want[n.ID] {
				text, _ := json.Marshal(g)
				t.Fatalf("seed %d, graph %d: %s is %q, want %q\n%s", seed, i, n.ID, got[n.ID], want[n.ID], text)
			}
		}
	}
	for _, status := range []string{Done, Failed, Skipped, Stuck, ""} {
		if counts[status] < 50 {
			t.Errorf("only %d nodes came to %q: the test proves little", counts[status], status)
		}
	}
}

// parsed is the graph read from its file, or with its last nodes as a patch.
func (x *randomRun) parsed(patched bool) (*Graph, error) {
	first := len(x.graph.Nodes)
	if patched {
		first = (first + 1) / 2
	}
	in := map[string]bool{}
	for _, n := range x.graph.Nodes[:first] {
		in[n.ID] = true
	}
	var edges []Edge
	p := Patch{PatchVersion: "0.1", AddNodes: x.graph.Nodes[first:], Justification: "the rest"}
	for _, e := range x.graph.Edges {
		if in[e.To] {
			edges = append(edges, e)
		} else {
			p.AddEdges = append(p.AddEdges, e)
		}
	}
	var text bytes.Buffer
	if err := json.NewEncoder(&text).Encode(map[string]any{
		"workflow_id": "w", "version": "1", "description": "d", "nodes": x.graph.Nodes[:first], "edges": append([]Edge{}, edges...),
	}); err != nil {
		return nil, err
	}
	d, faults := Parse("w.yaml", text.Bytes())
	if len(faults) > 0 {
		return nil, faults
	}
	g := new(Graph) // as it comes from a record
	recorded, err := json.Marshal(d.Graph)
	if err == nil {
		err = json.Unmarshal(recorded, g)
	}
	if err != nil || !patched {
		return g, err
	}
	g, _, err = g.Overlay(p, "", Values{})
	return g, err
}
