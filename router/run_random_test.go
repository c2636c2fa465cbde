package router_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
)

// skillsOf the random graphs, by effect.
var skillsOf = []string{"s.pure", "s.idem", "s.once"}

// randomFlow is a workflow of some nodes with edges that lead forward, some of them with conditions.
func randomFlow(r *rand.Rand, nodes int) string {
	var b strings.Builder
	b.WriteString("workflow_id: random\nversion: 1.0.0\ndescription: Anything.\nnodes:\n")
	var edges []string
	for i := range nodes {
		inputs := fmt.Sprintf("n: %d", i)
		for from := range i {
			if r.IntN(3) > 0 {
				continue
			}
			condition := ""
			switch r.IntN(4) {
			case 0:
				condition = fmt.Sprintf(`, condition: "nodes.n%d.outputs.success == true"`, from)
			case 1:
				condition = fmt.Sprintf(`, condition: "nodes.n%d.outputs.success == false"`, from)
			}
			edges = append(edges, fmt.Sprintf("  - {from: n%d, to: n%d%s}\n", from, i, condition))
		}
		fmt.Fprintf(&b, "  - {id: n%d, type: function, fn: %s, inputs: {%s}, retry: {max: %d, backoff_sec: 1}}\n", i, skillsOf[r.IntN(3)], inputs, 1+r.IntN(2))
	}
	if len(edges) > 0 {
		b.WriteString("edges:\n" + strings.Join(edges, ""))
	}
	return b.String()
}

// TestRunsAtRandom: random graphs complete through routers that die between any two intents and
// during an execution. No once call is sent twice, and the state rebuilt from the records is the
// one that the process had.
func TestRunsAtRandom(t *testing.T) {
	ended := map[catalog.PlanStatus]int{}
	for seed := range uint64(12) {
		ended[runAtRandom(t, rand.New(rand.NewPCG(seed, 7)))]++
	}
	if ended[catalog.PlanComplete] == 0 || ended[catalog.PlanFailed] == 0 {
		t.Errorf("runs ended as %v: the graphs try too little", ended)
	}
}

func runAtRandom(t *testing.T, rng *rand.Rand) catalog.PlanStatus {
	t.Helper()
	w := routertest.New(t, routertest.Options{})
	for i, effect := range []catalog.Effect{catalog.Pure, catalog.Idempotent, catalog.Once} {
		w.Pin(skillsOf[i], effect)
	}
	w.Data("approval", `{"once":false}`)
	w.PushAgents(1, map[string]string{"workflows/random": randomFlow(rng, 7)})
	once, signed := map[string]int{}, map[string]bool{}
	answer := func(_ context.Context, c routertest.Call) intents.Report {
		if c.Ticket.Pins[0].Effect == string(catalog.Once) {
			once[string(c.Body.Intent.Args)]++
		}
		if rng.IntN(5) == 0 {
			return routertest.Failed(intents.ExecutorFailed)
		}
		return routertest.Done(map[string]any{"output": map[string]any{"success": rng.IntN(4) > 0}})
	}
	w.Bus.On("skill.call", answer)
	r := w.BegunRun("r1", "random", `{}`)
	told := r.Claimed()
	again := func() { // the next process
		w.Bus.On("skill.call", answer)
		r.Plan = r.Plan.On(w)
		if r.View().Status == catalog.PlanExecuting {
			told = r.Claimed()
		}
	}
	for range 200 {
		if rng.IntN(4) == 0 {
			_, before, err := w.Dir.Digest()
			w.Must(err)
			w = w.Restart()
			if _, after, err := w.Dir.Digest(); err != nil || before != after {
				t.Fatalf("another state after a restart: %v", err)
			}
			again()
		}
		if len(told.Next) == 0 || told.Next[0].Next == catalog.NextStuck { // a node has failed
			break
		}
		w.Clock.Move(time.Second)
		n := told.Next[rng.IntN(len(told.Next))]
		id := r.View().Steps[n.Step-1].ID
		if n.Next == catalog.NextSkip {
			told = routertest.DetailsOf(w, w.Want(w.Do(r.SkipIntent(id)), intents.OK))
			continue
		}
		node := r.Begin(id)
		attempt := fmt.Sprint(id, node.NodeIntent.Occurrence)
		fresh := !signed[attempt]
		if signed[attempt] = true; fresh && rng.IntN(4) == 0 { // it dies while the intent is being executed
			next, _ := left(w, node.SignIntent())
			next.Bus.On("skill.call", answer)
			next.Start()
			w = next
			again()
			continue
		}
		told = endNode(w, node)
	}
	status := "complete"
	if a := r.Close(status); a.Code != intents.OK {
		w.Want(r.Close("failed"), intents.OK)
	}
	for args, n := range once {
		if n > 1 {
			t.Errorf("%s was sent %d times", args, n)
		}
	}
	return r.View().Status
}

// endNode signs the intent of a node and ends its task as that has ended.
func endNode(w *routertest.World, n *routertest.Node) catalog.PlanDetails {
	a := n.Sign()
	if a.Code == intents.OK {
		return routertest.DetailsOf(w, w.Want(n.Ends("done", a.IntentID), intents.OK))
	}
	return routertest.DetailsOf(w, w.Want(n.Ends("failed", ""), intents.OK))
}

// TestRunsLeave: runs that have ended leave nothing behind two days later.
func TestRunsLeave(t *testing.T) {
	w := flowWorld(t)
	size := func() int {
		var b bytes.Buffer
		_, err := w.Dir.Snapshot(&b)
		w.Must(err)
		return b.Len()
	}
	for i := range 60 {
		r := w.BegunRun(fmt.Sprint("r", i), "lead", `{"file":"f1"}`)
		if i%3 == 0 {
			w.Want(r.Close("failed"), intents.OK)
			continue
		}
		runNodes(t, r, catalog.PlanDetails{Next: []catalog.NextNode{{Step: 1, Next: "run"}}})
	}
	full := size()
	w.Clock.Move(49 * time.Hour)
	w.Want(w.NewPlan("late").Open(), intents.OK)
	held := w.Dir.Stats()
	if held.Closed != 0 || held.Tasks != 0 || held.Open != 1 {
		t.Errorf("%+v", held)
	}
	if left := size(); left > full/3 {
		t.Errorf("%d of %d bytes are left", left, full)
	}
}

// TestReplayOfEffects: a replay of a run of fifty once nodes sends nothing.
func TestReplayOfEffects(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	w.Pin("s.once", catalog.Once)
	w.Data("approval", `{"once":false}`)
	var b strings.Builder
	b.WriteString("workflow_id: fifty\nversion: 1.0.0\ndescription: Acts.\nnodes:\n")
	for i := range 50 {
		fmt.Fprintf(&b, "  - {id: n%d, type: function, fn: s.once, inputs: {n: %d}}\n", i, i)
	}
	b.WriteString("edges:\n")
	for i := range 49 {
		fmt.Fprintf(&b, "  - {from: n%d, to: n%d}\n", i, i+1)
	}
	w.PushAgents(1, map[string]string{"workflows/fifty": b.String()})
	w.Bus.On("skill.call", leads)
	r := w.BegunRun("r1", "fifty", `{}`)
	runNodes(t, r, catalog.PlanDetails{Next: []catalog.NextNode{{Step: 1, Next: "run"}}})
	for _, mode := range []string{catalog.ReplayFreeze, catalog.ReplayShadow} {
		before := len(w.Bus.Calls("skill.call"))
		again, told := repeated(t, r, catalog.RunReplay{RunID: r.ID, FromNode: "n0", Mode: mode})
		signed := runNodes(t, again, told)
		v := again.View()
		kept := slices.ContainsFunc(v.Steps, func(s catalog.StepView) bool { return s.Replayed == 0 })
		if n := len(w.Bus.Calls("skill.call")) - before; n != 0 || len(signed) != 0 || v.Status != catalog.PlanComplete || kept {
			t.Errorf("%s: %d calls, %d intents, %s", mode, n, len(signed), v.Status)
		}
	}
}
