package audit_test

import (
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

const carefulAgent = `name: careful
description: Closes with care.
tools:
  - {server: crm, name: close, approval: {roles: [approver]}}
  - {server: crm, name: list, approval: {roles: [approver], when: {properties: {all: {const: true}}, required: [all]}}}
`

// careful begins a log with an agent whose calls of crm.close wait for people, and those of
// crm.list for all. One of each ran and one waits.
func (d *dishonest) careful() {
	d.Helper()
	d.acme()
	d.Pin("crm.list", catalog.Pure)
	d.Pin("crm.close", catalog.Pure)
	d.PushAgents(1, map[string]string{"careful": carefulAgent})
	d.plan = d.BegunAgent("plan_1", "careful")
	d.task = d.plan.Started(1)
	d.Want(d.task.Call("crm.list", `{"all":false}`), intents.OK)
	d.Want(d.task.Call("crm.list", `{"all":true}`), intents.ApprovalRequired)
	d.held = d.Want(d.task.Call("crm.close", `{"id":1}`), intents.ApprovalRequired)
	d.Want(d.Do(d.approves("ben")), intents.OK)
}

// calls appends a call of the careful agent as it was not decided.
func (d *dishonest) calls(skill, input string, changes ...func(*appended)) int64 {
	d.Helper()
	return d.accepted(d.task.CallOrder(skill, input), append(changes, func(a *appended) {
		a.facts.Task.Agent, a.facts.Task.Skills, a.facts.Task.Revision = "careful", []string{"crm.close", "crm.list"}, 0
		a.facts.Skill = &intents.FactSkill{Name: skill, Digest: intents.Digest([]byte(skill)), Effect: string(catalog.Pure)}
	})...)
}

var registryMisdeeds = []misdeed{
	{"agent-call-not-held", "agent-approved", "a task's order: it waits for people where its agent's file says so", "its agent's file holds it", func(d *dishonest) int64 {
		return d.calls("crm.close", `{"id":2}`)
	}},
	{"agent-call-with-held-arguments", "agent-approved", "a task's order: it waits for people where its agent's file says so", "its agent's file holds it", func(d *dishonest) int64 {
		return d.calls("crm.list", `{"all":true,"more":1}`)
	}},
	{"agent-call-held-for-others", "agent-approved", "a task's order: it waits for people where its agent's file says so", "its agent's file holds it", func(d *dishonest) int64 {
		return d.calls("crm.close", `{"id":3}`, func(a *appended) {
			terms := *d.held.Decision.Hold
			terms.Rules = []intents.HoldRule{terms.Rules[0]}
			terms.Rules[0].Roles = []string{"user"}
			a.decision.Verdict, a.decision.Code, a.decision.Hold, a.outcome = intents.Hold, intents.ApprovalRequired, &terms, nil
		})
	}},
}
