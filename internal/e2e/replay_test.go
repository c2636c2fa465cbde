package e2e

import (
	"net/http"
	"testing"

	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/node"
)

const signed = `workflow_id: signed
version: "1"
description: Asks people, then says so with an effect that waits for them too.
nodes:
  - {id: ask, type: approval, inputs: {title: "Shall it go on?", detail: x}}
  - {id: tell, type: function, fn: lab.notify, inputs: {text: hello}}
  - {id: on, type: python, fn: 'print("true")', inputs: {by: "${nodes.ask.outputs.approved}"}}
  - {id: say, type: agent, fn: teller, inputs: {task: "Say what came of it."}}
edges:
  - {from: ask, to: tell, condition: "${nodes.ask.outputs.success == true}"}
  - {from: tell, to: on}
  - {from: on, to: say}
`

// TestReplayOfApproved: a run that waited for people, at a question and at an effect, is repeated in both modes
// from each of its nodes: each replay completes, asks nobody, and has no effect.
func TestReplayOfApproved(t *testing.T) {
	t.Parallel()
	l := serveLab(t, nil)
	s := start(t, setup{Limits: node.Limits{Requests: -1}, Model: echoAgent(), Skills: []string{l.skills}, Agents: registryDir(t, map[string]string{"agents/teller.yaml": tellerFile, "workflows/signed.yaml": signed})})
	ben, _, _ := s.holds("lab.notify")
	ana := s.as("ana")
	id := s.startRun(ana, "signed", nil)
	for _, at := range []string{"ask", "tell"} {
		s.runUntil(ana, id, "it waits", waits(at))
		held := s.inbox(ben)
		if len(held) != 1 {
			t.Fatalf("held %+v", held)
		}
		if _, p := s.decide(ben, held[0].IntentID, catalog.DecisionApprove, ""); p.Code != "" {
			t.Fatalf("%+v", p)
		}
	}
	if v := s.runUntil(ana, id, "it ends", ended); v.Status != catalog.PlanComplete {
		t.Fatalf("%v %+v", nodes(v), v.Failure)
	}
	for _, mode := range []string{catalog.ReplayFreeze, catalog.ReplayShadow} {
		for _, from := range []string{"ask", "tell", "on", "say"} {
			var again catalog.PlanView
			if status, p := s.call(ana, http.MethodPost, "/v1/runs/"+id+"/replay", map[string]string{"from_node": from, "mode": mode}, &again); status != http.StatusCreated {
				t.Fatalf("%s from %s: HTTP %d %+v", mode, from, status, p)
			}
			if v := s.runUntil(ana, again.PlanID, mode+" from "+from, ended); v.Status != catalog.PlanComplete {
				t.Errorf("%s from %s: %v %+v", mode, from, nodes(v), v.Failure)
			}
		}
	}
	if held, said := s.inbox(ben), l.notifications(); len(held) != 0 || len(said) != 1 {
		t.Errorf("held %+v, said %q", held, said)
	}
}
