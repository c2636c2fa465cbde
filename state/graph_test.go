package state_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
)

// node is the purpose of one step of a random graph. Each attempt is a step of its own.
type node struct {
	reads, waits []int // nodes, by index
	parallel     bool
	fails        bool // at its first attempt

	number int // of its current step
	task   *routertest.Task
	key    string // of its result, once done
	read   []int  // nodes whose results its task might read
}

// before returns the nodes that must be done first, computed from the graph alone.
func before(nodes []*node, i int) []int {
	n := nodes[i]
	out := slices.Concat(n.reads, n.waits)
	if i > 0 && len(n.waits) == 0 && !n.parallel {
		out = append(out, i-1)
	}
	return out
}

func graphOf(r *rand.Rand) []*node {
	nodes := make([]*node, 2+r.IntN(5))
	for i := range nodes {
		n := &node{parallel: r.IntN(2) > 0, fails: r.IntN(6) == 0}
		for j := range i {
			if r.IntN(3) == 0 {
				n.reads = append(n.reads, j)
			}
			if r.IntN(5) == 0 {
				n.waits = append(n.waits, j)
			}
		}
		nodes[i] = n
	}
	return nodes
}

// stepsOf plans the nodes that are not done, with numbers from first.
func stepsOf(nodes []*node, first int) []catalog.PlanStep {
	var out []catalog.PlanStep
	for i, n := range nodes {
		if n.key != "" {
			continue
		}
		n.number = first
		first++
		s := routertest.Steps(n.number, "feed")[0]
		s.Parallel = true // After lists everything that it waits for
		for _, j := range n.reads {
			s.Inputs = append(s.Inputs, nodes[j].number)
		}
		for _, j := range before(nodes, i) {
			if at := nodes[j].number; !slices.Contains(s.After, at) && !slices.Contains(s.Inputs, at) {
				s.After = append(s.After, at)
			}
		}
		if alone := i > 0 && !n.parallel && slices.Equal(s.After, []int{nodes[i-1].number}) && nodes[i-1].number == n.number-1; alone {
			s.After, s.Parallel = nil, false // the default has the same meaning
		}
		out = append(out, s)
	}
	return out
}

// readable asks for all results, and records those that the task of the node may read.
func (n *node) readable(w *routertest.World, nodes []*node) {
	n.read = nil
	for j, from := range nodes {
		if from.key == "" {
			continue
		}
		switch a := w.Do(n.task.Intent("read_memory", catalog.ReadMemory{Key: from.key})); a.Code {
		case intents.OK:
			n.read = append(n.read, j)
		case intents.TaskScope:
		default:
			w.Fatalf("%s", a.Reason)
		}
	}
}

// TestRandomGraphs: however the steps of a plan run in parallel, and whichever fail, each is
// opened when all that it waits for is done and never before, at most four run, failures until
// the next revision are one replan, and in the end every node was done with its inputs, as if
// the nodes had run one after the other.
func TestRandomGraphs(t *testing.T) {
	const graphs = 160
	w := routertest.New(t, routertest.Options{})
	w.Pin("feed", catalog.Pure)
	overlapped, failures, several := 0, 0, 0
	for seed := range uint64(graphs) {
		r := rand.New(rand.NewPCG(seed, 9))
		nodes := graphOf(r)
		p := w.NewPlan(fmt.Sprint("g", seed))
		w.Want(p.Open(), intents.OK)
		w.Want(p.Claim(), intents.OK)
		next, replans, live := 1, 0, []int{}
		for {
			steps := stepsOf(nodes, next)
			next += len(steps)
			w.Want(p.Plan(steps), intents.OK)
			failed := 0
			for {
				var may []int
				for i, n := range nodes {
					ready := !slices.ContainsFunc(before(nodes, i), func(j int) bool { return nodes[j].key == "" })
					open := n.key == "" && n.task == nil
					if open && ready && failed == 0 && len(live) < catalog.MaxLive {
						may = append(may, i)
					} else if n.key == "" && r.IntN(4) == 0 {
						w.Want(w.Do(p.StepIntent(p.NewTask(n.number).StepArgs())), intents.MalformedArgs)
					}
				}
				if len(may) == 0 && len(live) == 0 {
					break
				}
				if len(may) > 0 && (len(live) == 0 || r.IntN(3) > 0) {
					i := may[r.IntN(len(may))]
					nodes[i].task = p.Started(nodes[i].number)
					live = append(live, i)
					if len(live) > 1 {
						overlapped++
					}
					continue
				}
				at := r.IntN(len(live))
				n := nodes[live[at]]
				live = slices.Delete(live, at, at+1)
				if n.fails {
					w.Want(n.task.Finish("failed", "", "as it was to"), intents.OK)
					n.fails, n.task = false, nil
					if failed++; failed > 1 {
						several++
					}
					continue
				}
				n.readable(w, nodes)
				n.key, n.task = n.task.Done(), nil
			}
			v := p.View()
			if failed > 0 {
				replans++
			}
			if v.ReplanCount != replans || len(v.History) != replans {
				t.Fatalf("graph %d: %d replans, want %d: %+v", seed, v.ReplanCount, replans, v.History)
			}
			failures += failed
			if failed == 0 {
				break
			}
			if replans > catalog.MaxReplans {
				w.Want(p.Plan(stepsOf(nodes, next)), intents.MalformedArgs)
				break
			}
		}
		if replans > catalog.MaxReplans {
			w.Want(p.Fail(), intents.OK)
			continue
		}
		// Sequentially: every node is done and has read its inputs, no more.
		for i, n := range nodes {
			if d := cmp.Diff(append([]int(nil), n.reads...), n.read); n.key == "" || d != "" {
				t.Fatalf("graph %d, node %d: done %q, read (-want +got):\n%s", seed, i, n.key, d)
			}
		}
		w.Want(p.Complete(), intents.OK)
	}
	if overlapped < graphs/2 || failures < graphs/4 || several == 0 {
		t.Errorf("%d steps overlapped, %d failed, %d of them beside another: too few to show anything", overlapped, failures, several)
	}
}
