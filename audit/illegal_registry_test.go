package audit_test

import (
	"encoding/json"
	"strings"
	"time"

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
	d.Want(d.Admin("admin.put", catalog.AdminPut{Tenant: "default", User: &catalog.User{UserID: "ben", Roles: []string{"approver"}}}), intents.OK)
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
	return d.accepted(d.task.CallIntent(skill, input), append(changes, func(a *appended) {
		a.inputs.Task.Agent, a.inputs.Task.Skills, a.inputs.Task.Revision = "careful", []string{"crm.close", "crm.list"}, 0
		a.inputs.Skill = &intents.SkillInput{Name: skill, Digest: intents.Digest([]byte(skill)), Effect: string(catalog.Pure), Trusted: true, OpenWorld: intents.No}
	})...)
}

var registryMisdeeds = []misdeed{
	{"agent-call-not-held", "agent-approved", "a task's intent: it waits for people where its agent's file says so", "its agent's file holds it", func(d *dishonest) int64 {
		return d.calls("crm.close", `{"id":2}`)
	}},
	{"agent-call-with-held-arguments", "agent-approved", "a task's intent: it waits for people where its agent's file says so", "its agent's file holds it", func(d *dishonest) int64 {
		return d.calls("crm.list", `{"all":true,"more":1}`)
	}},
	{"agent-call-held-for-others", "agent-approved", "a task's intent: it waits for people where its agent's file says so", "its agent's file holds it", func(d *dishonest) int64 {
		return d.calls("crm.close", `{"id":3}`, func(a *appended) {
			terms := *d.held.Decision.Hold
			terms.Rules = []intents.HoldRule{terms.Rules[0]}
			terms.Rules[0].Roles = []string{"user"}
			a.decision.Verdict, a.decision.Code, a.decision.Hold, a.outcome = intents.Hold, intents.ApprovalRequired, &terms, nil
		})
	}},
}

// offered begins a log with a planner's plan that may name the agent shop, and not the one
// that came after it was opened.
func (d *dishonest) offered() {
	d.Helper()
	d.acme()
	d.Pin("crm.list", catalog.Pure)
	d.Pin("feed", catalog.Pure)
	d.Want(d.Admin("admin.put", catalog.AdminPut{Tenant: "default", Role: &catalog.RoleData{Role: "clerk", Capabilities: []string{"plans:*"}}}), intents.OK)
	d.PushAgents(1, map[string]string{"shop": shopAgent})
	d.plan = d.NewPlan("plan_1")
	d.Want(d.plan.Open(), intents.OK)
	d.Want(d.plan.Claim(), intents.OK)
	d.PushAgents(2, map[string]string{"shop": shopAgent + "temperature: 0\n", "new": strings.Replace(shopAgent, "name: shop", "name: new", 1)})
}

// byAgent is a plan of one step that an agent carries out.
func byAgent(agent string, skills ...string) []catalog.PlanStep {
	return []catalog.PlanStep{{Step: 1, Task: "Sell.", Skills: append([]string{}, skills...), Agent: agent, ReturnSpec: catalog.ReturnSpec{Shape: "string", Reason: "to tell"}}}
}

// stepping continues with a task of the agent's step.
func (d *dishonest) stepping() {
	d.Helper()
	d.offered()
	d.Want(d.plan.Plan(byAgent("shop")), intents.OK)
	d.task = d.plan.NewTask(1)
	a := d.task.StepArgs()
	a.Deadline = d.Clock.Now().Add(5 * time.Minute).Format(time.RFC3339)
	d.deadline = a.Deadline
	d.Want(d.Do(d.plan.StepIntent(d.task.Proved(a))), intents.OK)
	d.Want(d.task.Call("crm.list", `{}`), intents.OK)
	d.Want(d.task.Write("result"), intents.OK)
}

// ofStep makes the inputs of an intent those of the task of the agent's step.
func ofStep(a *appended) {
	ofShop(a)
	a.inputs.Task.Revision = 1
}

var agentStepMisdeeds = []misdeed{
	{"step-agent-not-there", "agent-offered", "plan: the agent of a step is there and can be run", "no such agent", func(d *dishonest) int64 {
		return d.accepted(d.revision(1, byAgent("nobody")))
	}},
	{"step-agent-of-later", "agent-offered", "plan: the agent of a step is there and can be run", "no such agent", func(d *dishonest) int64 {
		return d.accepted(d.revision(1, byAgent("new")))
	}},
	{"step-agent-with-skills", "agent-offered", "plan: a step names skills or an agent", "no skills of its own", func(d *dishonest) int64 {
		return d.accepted(d.revision(1, byAgent("shop", "feed")))
	}},
	{"step-agent-without-capability", "agent-offered", "every intent: the actor's roles give the type's capability", "RBAC_FORBIDDEN", func(d *dishonest) int64 {
		o := d.revision(1, byAgent("shop"))
		o.Roles = []string{"clerk"}
		return d.accepted(o)
	}},
	{"step-agent-signs-another-type", "agent-stepping", "a task's intent: its agent has a tool for the type", "has no tool for", func(d *dishonest) int64 {
		return d.accepted(d.task.Intent("write_temp", catalog.WriteTemp{Data: json.RawMessage(`1`)}), ofStep)
	}},
	{"step-agent-with-reply", "agent-stepping", "step.finish: the task of an agent's plan, and no other, is done with a reply", "ends with a reply", func(d *dishonest) int64 {
		return d.accepted(d.task.Intent("step.finish", catalog.StepFinish{TaskID: d.task.TaskID, Status: "done", Reply: "Those."}), ofStep)
	}},
	{"step-agent-got-by-another", "agent-stepping", "agent.get: the plan is open, and an agent's", "no agent runs the step", func(d *dishonest) int64 {
		o := d.transition("agent.get", catalog.AgentGet{})
		o.Ctx.Step = 2
		return d.accepted(o)
	}},
}
