package audit_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"aob.dev/writ/audit"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
	"aob.dev/writ/storage"
)

const signFlow = `
workflow_id: sign
version: 1.0.0
description: Asks people in the middle, and of an effect.
nodes:
  - {id: parse, type: function, fn: crm.parse, inputs: {n: 1}}
  - {id: put, type: function, fn: crm.put, inputs: {rows: "${nodes.parse.outputs.rows}"}}
  - {id: ask, type: approval, inputs: {title: "Go on?", detail: "x"}}
  - {id: end, type: function, fn: crm.parse, inputs: {by: "${nodes.ask.outputs.approved}"}}
  - {id: no, type: function, fn: crm.parse, inputs: {n: 2}}
edges:
  - {from: parse, to: put}
  - {from: put, to: ask}
  - {from: ask, to: end, condition: "${nodes.ask.outputs.success == true}"}
  - {from: ask, to: no, condition: "${nodes.ask.outputs.success == false}"}
`

const morePatch = `{"patch_version":"0.1","add_nodes":[{"id":"more","type":"python","fn":"print(1)"}],"add_edges":[{"from":"parse","to":"more"}],"remove_edges":[],"justification":"x"}`

// runs writes runs whose nodes wait for people, one of which is patched, one repeated, and one
// has a node that an operator resolves.
func (w *world) runs() {
	w.Helper()
	w.Pin("crm.parse", catalog.Pure)
	w.Pin("crm.put", catalog.Once)
	w.apiKeys("ben")
	w.Approval(`{"skills":["crm.put"]}`, "ben")
	w.PushAgents(2, map[string]string{"workflows/sign": signFlow})
	lost := false
	w.Bus.On("skill.call", func(context.Context, routertest.Call) intents.Report {
		if lost {
			return intents.Report{Status: intents.StatusIndetermined, Code: intents.Indeterminate, Reason: "nobody knows"}
		}
		return routertest.Done(map[string]any{"output": map[string]any{"rows": []int{1}}})
	})
	waits := func(n *routertest.Node, decision string) *intents.Answer {
		w.Helper()
		held := w.Want(n.Sign(), intents.ApprovalRequired)
		w.Want(w.Do(routertest.Intent{
			By: w.Gateway, Type: "hitl.approve", User: "ben", Roles: []string{"approver"}, Grant: through("ben"), Ctx: intents.Context{TurnID: n.TaskID},
			Args: catalog.Approve{IntentID: held.IntentID, Decision: decision, Reason: "so it is"},
		}), intents.OK)
		a, err := w.Router.Await(w.Context(), *held.Position)
		w.Must(err)
		return a
	}
	r := w.BegunRun("run_1", "sign", `{}`)
	r.Begin("parse").Done()
	for _, id := range []string{"put", "ask"} {
		n := r.Begin(id)
		w.Want(n.Ends("done", w.Want(waits(n, catalog.DecisionApprove), intents.OK).IntentID), intents.OK)
	}
	r.Begin("end").Done()
	w.Want(r.Do(r.SkipIntent("no")), intents.OK)
	w.Want(r.Close("complete"), intents.OK)

	no := w.BegunRun("run_2", "sign", `{}`)
	no.Begin("parse").Done()
	n := no.Begin("put")
	w.Want(waits(n, catalog.DecisionReject), intents.ApprovalRejected)
	w.Want(n.Ends("failed", ""), intents.OK)
	w.Want(no.Close("failed"), intents.OK)

	patched := w.BegunRun("run_3", "sign", `{}`)
	w.OK(routertest.Intent{By: w.Gateway, Type: "graph.patch", Args: catalog.GraphPatch{RunID: patched.ID, Patch: json.RawMessage(morePatch)}})
	w.Want(patched.Cancel(w.Gateway), intents.OK)

	unsure := w.BegunRun("run_4", "sign", `{}`)
	unsure.Begin("parse").Done()
	n = unsure.Begin("put")
	lost = true
	a := waits(n, catalog.DecisionApprove)
	lost = false
	w.Want(w.Admin("intent.resolve", catalog.IntentResolve{IntentID: a.IntentID, Status: "done", Reason: "it is there"}), intents.OK)
	w.Want(n.Ends("done", a.IntentID), intents.OK)
	w.Want(unsure.Cancel(w.Gateway), intents.OK)

	for _, mode := range []string{catalog.ReplayFreeze, catalog.ReplayShadow} {
		w.repeats(r, catalog.RunReplay{RunID: r.ID, FromNode: "parse", Mode: mode})
	}
}

// repeats carries out a replay of a run, node by node.
func (w *world) repeats(of *routertest.Run, a catalog.RunReplay) {
	w.Helper()
	answer := w.OK(routertest.Intent{By: w.Gateway, Type: "run.replay", Args: a})
	p := *of.Plan
	p.ID, p.Epoch, p.Digest, p.Session = routertest.Result[catalog.PlanView](w.World, answer).PlanID, 0, answer.IntentID, routertest.Session
	r := &routertest.Run{Plan: &p, Nodes: map[string]int{}}
	for told := r.Claimed(); len(told.Next) > 0; {
		id := r.View().Steps[told.Next[0].Step-1].ID
		if told.Next[0].Next == catalog.NextSkip {
			told = routertest.DetailsOf(w.World, w.Want(w.Do(r.SkipIntent(id)), intents.OK))
			continue
		}
		o, task := r.BeginIntent(id)
		begun := routertest.DetailsOf(w.World, w.Want(w.Do(o), intents.OK))
		n := &routertest.Node{Task: task}
		if begun.Kept == nil {
			n.NodeIntent = *begun.Intent
			begun.Kept = &catalog.KeptNode{Status: "done", Intent: w.Want(n.Sign(), intents.OK).IntentID}
		}
		told = routertest.DetailsOf(w.World, w.Want(n.Ends(begun.Kept.Status, begun.Kept.Intent), intents.OK))
	}
	w.Want(r.Close("complete"), intents.OK)
}

// TestRunsVerify: the auditor accepts what a router wrote of runs that wait for people, and finds
// an answer read by a later node that people did not give, and a question that is not the graph's.
func TestRunsVerify(t *testing.T) {
	w := newWorld(t)
	w.runs()
	r := w.verify(w.export(w.Journal, audit.Selection{}), audit.Options{Trust: w.trust(), Replay: true})
	if !r.OK || r.Unreplayable != 0 {
		t.Errorf("%v, %v", r.FirstBad, r.Why)
	}
	records := w.Records()
	at := int64(slices.IndexFunc(records, func(r storage.Record) bool {
		return r.Kind == storage.KindOutcome && strings.Contains(string(r.Parts[storage.PartOutputs]), `"approved"`)
	}))
	if at < 0 {
		t.Fatal("no answer of people has outputs")
	}
	forged := w.rewritten(at, func(r *storage.Record) {
		r.Parts[storage.PartOutputs] = json.RawMessage(`{"approved":[],"success":true}`)
	})
	if r := w.verify(w.export(forged, audit.Selection{}), audit.Options{Trust: w.trust()}); r.OK || r.FirstBad.Position != at {
		t.Errorf("%v, want at %d", r.FirstBad, at)
	}
}
