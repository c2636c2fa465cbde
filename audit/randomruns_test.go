package audit_test

import (
	"context"
	"encoding/json"
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

// runWalk plays runs of a random graph, whose nodes fail, wait for people, are turned down, are
// unknown to have happened, and are tried again. Some runs are patched, some are repeated.
type runWalk struct {
	*world
	rand *rand.Rand
}

// beginRuns makes a world ready for random runs.
func beginRuns(t *testing.T, seed uint64) *runWalk {
	t.Helper()
	k := &runWalk{world: newWorld(t), rand: rand.New(rand.NewPCG(seed, 5))}
	for skill, effect := range map[string]catalog.Effect{"s.pure": catalog.Pure, "s.idem": catalog.Idempotent, "s.once": catalog.Once, "s.held": catalog.Once} {
		k.Pin(skill, effect)
	}
	k.apiKeys("ben")
	k.Approval(`{"once":false,"skills":["s.held"]}`, "ben")
	k.PushAgents(1, map[string]string{"workflows/random": k.graph(6)})
	k.Bus.On("skill.call", func(context.Context, routertest.Call) intents.Report {
		switch k.rand.IntN(8) {
		case 0:
			return routertest.Failed(intents.ExecutorFailed)
		case 1:
			return intents.Report{Status: intents.StatusIndetermined, Code: intents.Indeterminate, Reason: "nobody knows"}
		default:
			return routertest.Done(map[string]any{"output": map[string]any{"success": k.rand.IntN(4) > 0, "n": k.rand.IntN(3)}})
		}
	})
	return k
}

// graph of some nodes with edges that lead forward, some of them with conditions.
func (k *runWalk) graph(nodes int) string {
	var b strings.Builder
	b.WriteString("workflow_id: random\nversion: 1.0.0\ndescription: Anything.\nnodes:\n")
	var edges []string
	for i := range nodes {
		for from := range i {
			if k.rand.IntN(3) == 0 {
				condition := []string{"", fmt.Sprintf(`, condition: "nodes.n%d.outputs.success == true"`, from), fmt.Sprintf(`, condition: "nodes.n%d.outputs.success == false"`, from)}
				edges = append(edges, fmt.Sprintf("  - {from: n%d, to: n%d%s}\n", from, i, condition[k.rand.IntN(3)]))
			}
		}
		if k.rand.IntN(4) == 0 {
			fmt.Fprintf(&b, "  - {id: n%d, type: approval, inputs: {title: \"Go on?\", detail: x}}\n", i)
			continue
		}
		skill := []string{"s.pure", "s.idem", "s.once", "s.held"}[k.rand.IntN(4)]
		fmt.Fprintf(&b, "  - {id: n%d, type: function, fn: %s, inputs: {n: %d}, retry: {max: %d, backoff_sec: 1}}\n", i, skill, i, 1+k.rand.IntN(2))
	}
	if len(edges) > 0 {
		b.WriteString("edges:\n" + strings.Join(edges, ""))
	}
	return b.String()
}

// run plays one to its end.
func (k *runWalk) run(name string) *routertest.Run {
	k.Helper()
	r := k.BegunRun(name, "random", `{}`)
	if k.rand.IntN(3) == 0 {
		k.Do(routertest.Intent{By: k.Gateway, Type: "graph.patch", Args: catalog.GraphPatch{RunID: r.ID, Patch: json.RawMessage(
			`{"patch_version":"0.1","add_nodes":[{"id":"more","type":"function","fn":"s.pure","inputs":{"n":9}}],"add_edges":[{"from":"n5","to":"more"}],"remove_edges":[],"justification":"x"}`)}})
		r.Revision++
		r.Digest = r.View().PlanDigest
	}
	k.runNodes(r)
	return r
}

// runNodes plays a claimed run to its end.
func (k *runWalk) runNodes(r *routertest.Run) {
	k.Helper()
	for told := r.Claimed(); ; {
		told.Next = slices.DeleteFunc(told.Next, func(n catalog.NextNode) bool { return n.Next != catalog.NextRun && n.Next != catalog.NextSkip })
		if len(told.Next) == 0 || k.rand.IntN(25) == 0 {
			break
		}
		k.Clock.Move(2 * time.Second)
		n := told.Next[k.rand.IntN(len(told.Next))]
		id := r.View().Steps[n.Step-1].ID
		if n.Next == catalog.NextSkip {
			told = routertest.DetailsOf(k.World, k.Want(k.Do(r.SkipIntent(id)), intents.OK))
			continue
		}
		ends := k.node(r, id)
		if ends.Code != intents.OK {
			break // its effect is unknown
		}
		told = routertest.DetailsOf(k.World, ends)
	}
	if a := r.Close("complete"); a.Code != intents.OK {
		if a := r.Close("failed"); a.Code != intents.OK {
			k.Want(r.Cancel(k.Gateway), intents.OK)
		}
	}
}

// node carries a node out, and ends its task as its intent has ended.
func (k *runWalk) node(r *routertest.Run, id string) *intents.Answer {
	k.Helper()
	o, task := r.BeginIntent(id)
	begun := routertest.DetailsOf(k.World, k.Want(k.Do(o), intents.OK))
	n := &routertest.Node{Task: task}
	if begun.Kept != nil {
		return n.Ends(begun.Kept.Status, begun.Kept.Intent)
	}
	n.NodeIntent = *begun.Intent
	a := n.Sign()
	if a.Code == intents.ApprovalRequired && a.Decision.Hold != nil && a.Position != nil {
		a = k.says(n, a)
	}
	if a.Code == intents.Indeterminate && k.rand.IntN(2) == 0 {
		status := []string{"done", "failed"}[k.rand.IntN(2)]
		k.Want(k.Admin("intent.resolve", catalog.IntentResolve{IntentID: a.IntentID, Status: status, Reason: "seen"}), intents.OK)
		if status == "done" {
			return n.Ends("done", a.IntentID)
		}
	}
	allowed := a.Decision != nil && slices.Contains(a.Decision.PolicyIDs, "writ.replay.allowed")
	if a.Code == intents.OK || begun.DryRun && allowed {
		return n.Ends("done", a.IntentID)
	}
	return n.Ends("failed", "")
}

// says gives ben's decision about a held intent.
func (k *runWalk) says(n *routertest.Node, held *intents.Answer) *intents.Answer {
	k.Helper()
	decision := []string{catalog.DecisionApprove, catalog.DecisionApprove, catalog.DecisionReject}[k.rand.IntN(3)]
	k.Want(k.Do(routertest.Intent{
		By: k.Gateway, Type: "hitl.approve", User: "ben", Roles: []string{"approver"}, Grant: through("ben"), Ctx: intents.Context{TurnID: n.TaskID},
		Args: catalog.Approve{IntentID: held.IntentID, Decision: decision, Reason: "so it is"},
	}), intents.OK)
	a, err := k.Router.Await(k.Context(), *held.Position)
	k.Must(err)
	return a
}

// randomRuns is what random runs of a seed, and repetitions of them, have written.
func randomRuns(t *testing.T, seed uint64) *world {
	t.Helper()
	k := beginRuns(t, seed)
	for i := range 3 {
		r := k.run(fmt.Sprintf("run_%d", i))
		mode := []string{catalog.ReplayFreeze, catalog.ReplayShadow}[k.rand.IntN(2)]
		a := k.Do(routertest.Intent{By: k.Gateway, Type: "run.replay", Args: catalog.RunReplay{RunID: r.ID, FromNode: fmt.Sprintf("n%d", k.rand.IntN(6)), Mode: mode}})
		if a.Code != intents.OK {
			continue // one that was patched
		}
		p := *r.Plan
		p.ID, p.Epoch, p.Revision, p.Digest, p.Session = routertest.Result[catalog.PlanView](k.World, a).PlanID, 0, 1, a.IntentID, routertest.Session
		k.runNodes(&routertest.Run{Plan: &p, Nodes: map[string]int{}})
	}
	return k.world
}

// TestRandomRuns: what a router writes of random runs is projected whole, verifies, is valid, and is decided the
// same in a replay.
func TestRandomRuns(t *testing.T) {
	for seed := range seeds(t) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { randomRuns(t, seed).sound() })
	}
}
