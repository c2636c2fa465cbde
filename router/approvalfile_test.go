package router_test

import (
	"testing"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
)

const careful = `
name: careful
description: Closes with care.
tools:
  - {server: crm, name: list}
  - {server: crm, name: close, approval: {roles: [approver]}}
  - {server: mail, approval: {roles: [approver], when: {properties: {to: {const: all}}, required: [to]}}}
  - {name: exec_python, approval: {roles: [approver]}}
`

// TestAgentApproval: calls of a tool need approval if the agent's file requires it, for the
// arguments that its schema names, although policy allows them; calls that policy holds too need
// both approvals.
func TestAgentApproval(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	for _, skill := range []string{"crm.list", "crm.close", "mail.send"} {
		w.Pin(skill, catalog.Pure)
	}
	people(w)
	w.PushAgents(1, map[string]string{"careful": careful})
	p := w.BegunAgent("p", "careful")
	task := p.Started(1)
	w.Want(task.Call("crm.list", `{}`), intents.OK)
	w.Want(task.Call("mail.send", `{"to":"ann"}`), intents.OK)
	held := w.Want(task.Call("crm.close", `{"id":1}`), intents.ApprovalRequired)
	if d := held.Decision; len(d.PolicyIDs) != 1 || d.PolicyIDs[0] != "agent.careful.approval" || len(d.Hold.Rules) != 1 || d.Hold.Rules[0].Roles[0] != "approver" {
		t.Errorf("held: %+v", d)
	}
	w.Want(task.Call("mail.send", `{"to":"all"}`), intents.ApprovalRequired)
	w.Want(w.Do(task.Intent("exec_python", catalog.ExecPython{Script: "print(1)"})), intents.ApprovalRequired)
	w.Want(w.Do(task.Intent("skill.load", catalog.SkillLoad{Skill: "crm.close"})), intents.OK)
	if n := len(w.Bus.Calls("skill.call")); n != 2 {
		t.Errorf("%d calls before anybody approves", n)
	}

	w = w.Restart()
	task.Plan = task.On(w)
	w.Want(task.Call("crm.close", `{"id":2}`), intents.ApprovalRequired)
	x := releaseWorld{w, task, held}
	w.Want(x.says("ben", catalog.DecisionApprove), intents.OK)
	w.Want(x.outcome(), intents.OK)

	// The step of a planner's plan has no agent's file.
	w.Want(w.Begun("q", "crm.close").Started(1).Call("crm.close", `{"id":1}`), intents.OK)
}
