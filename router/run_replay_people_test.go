package router_test

import (
	"strings"
	"testing"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
)

const signFlow = `
workflow_id: sign
version: 1.0.0
description: Asks people in the middle, and of an effect.
nodes:
  - {id: parse, type: function, fn: crm.parse, inputs: {n: 1}}
  - {id: put, type: function, fn: crm.put, inputs: {rows: "${nodes.parse.outputs.rows}"}}
  - {id: ask, type: approval, inputs: {title: "Go on?", detail: "It has put ${nodes.put.outputs.id}."}}
  - {id: end, type: function, fn: crm.parse, inputs: {by: "${nodes.ask.outputs.approved}"}}
  - {id: no, type: function, fn: crm.parse, inputs: {n: 2}}
edges:
  - {from: parse, to: put}
  - {from: put, to: ask}
  - {from: ask, to: end, condition: "${nodes.ask.outputs.success == true}"}
  - {from: ask, to: no, condition: "${nodes.ask.outputs.success == false}"}
`

// signRun is a complete run whose nodes needed approval.
func signRun(w *routertest.World) *routertest.Run {
	w.Helper()
	people(w)
	w.Data("approval", `{"skills":["crm.put"]}`)
	w.PushAgents(2, map[string]string{"workflows/sign": signFlow})
	r := w.BegunRun("r1", "sign", `{}`)
	r.Begin("parse").Done()
	for _, id := range []string{"put", "ask"} {
		n := r.Begin(id)
		x := releaseWorld{w, n.Task, w.Want(n.Sign(), intents.ApprovalRequired)}
		x.state(x.says("ben", catalog.DecisionApprove))
		w.Want(x.outcome(), intents.OK)
		w.Want(n.Ends("done", x.held.IntentID), intents.OK)
	}
	r.Begin("end").Done()
	w.Want(r.Do(r.SkipIntent("no")), intents.OK)
	w.Want(r.Close("complete"), intents.OK)
	return r
}

// TestApprovalHasOutputs: later nodes read people's answers to the question of a node.
func TestApprovalHasOutputs(t *testing.T) {
	w := flowWorld(t)
	signRun(w)
	for _, c := range w.Bus.Calls("skill.call") {
		if by := string(c.Body.Intent.Args); strings.Contains(by, `"by":[{`) && strings.Contains(by, `"user_id":"ben"`) {
			return
		}
	}
	t.Error("no call has the answer")
}

// TestReplayOfApprovedIntent: a freeze and a shadow of a run continue from the answers that people
// gave in it. They ask nobody, and send nothing that has an effect.
func TestReplayOfApprovedIntent(t *testing.T) {
	for _, mode := range []string{catalog.ReplayFreeze, catalog.ReplayShadow} {
		for _, from := range []string{"parse", "put", "ask", "end"} {
			t.Run(mode+" from "+from, func(t *testing.T) {
				w := flowWorld(t)
				r := signRun(w)
				before := len(w.Bus.Calls("skill.call"))
				again, told := repeated(t, r, catalog.RunReplay{RunID: r.ID, FromNode: from, Mode: mode})
				for _, a := range runNodes(t, again, told) {
					w.Want(a, intents.OK)
				}
				if v := again.View(); v.Status != catalog.PlanComplete {
					t.Errorf("%s: %+v", v.Status, v.Steps)
				}
				for _, c := range w.Bus.Calls("skill.call")[before:] {
					if c.Ticket.Pins[0].Effect != string(catalog.Pure) {
						t.Errorf("%s was called again", c.Ticket.Pins[0].Skill)
					}
				}
				if held := w.Dir.Holds("default"); len(held) != 0 {
					t.Errorf("people are asked again: %v", held)
				}
			})
		}
	}
}
