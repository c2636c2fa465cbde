package audit_test

import (
	"encoding/json"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
)

const helpAgent = `agent_id: help
display_name: Help desk
description: Resets passwords.
endpoint: https://help.example/mcp
type: mcp
is_default: true
confidence_threshold: 0
clarification_required: false
examples: [Reset my password]
`

const helpSkill = "help.handle_message"

// help begins a log with a plan of a remote agent, and one of an agent that may ask any.
func (d *dishonest) help() {
	d.Helper()
	d.Data("approval", `{"once":false}`)
	d.PushAgents(1, map[string]string{"help": helpAgent, "any": "name: any\ndescription: Asks.\ntools: [{name: ask_agent}]\n"})
	d.done = d.BegunAgent("plan_2", "any").Started(1)
	d.plan = d.BegunAgent("plan_1", "help")
	d.task = d.plan.Started(1)
	d.deadline = d.Clock.Now().Add(5 * time.Minute).Format(time.RFC3339)
}

// ofHelp makes the inputs of an intent those of the remote agent's task.
func (d *dishonest) ofHelp(a *appended) {
	asTask(d.task, "help", helpSkill)(a)
	if a.inputs.Skill != nil {
		a.decision.Effect = string(catalog.Once)
		a.inputs.Skill = &intents.SkillInput{Name: helpSkill, Digest: intents.Digest([]byte(helpAgent)), Effect: string(catalog.Once), Kind: intents.KindAgent}
	}
}

// message is the one call of the remote agent's task.
func (d *dishonest) message() routertest.Intent {
	o := d.task.Intent("skill.call", catalog.SkillCall{Skill: helpSkill, Input: json.RawMessage(`{"raw_input":"Hello"}`)})
	o.Ctx.Call = "1.0"
	return o
}

// helpsLegally continues from the scene of a remote agent as an honest router would.
func (d *dishonest) helpsLegally() {
	d.Helper()
	d.accepted(d.task.Intent("agent.get", catalog.AgentGet{}), d.ofHelp, func(a *appended) {
		a.result = catalog.AgentGetResult{Agent: "help", Text: helpAgent, TimeLimitSec: 300}
	})
	d.accepted(d.message(), d.ofHelp)
	d.accepted(d.task.Intent("step.finish", catalog.StepFinish{TaskID: d.task.TaskID, Status: "done", Reply: "These.", WorkflowComplete: true}), d.ofHelp)
	d.accepted(d.closing("complete"))
}

var remoteMisdeeds = []misdeed{
	{"remote-agent-runs-a-script", "remote", "a task's intent: its agent has a tool for the type", "has no tool for", func(d *dishonest) int64 {
		return d.accepted(d.task.Intent("exec_python", catalog.ExecPython{Script: "print(1)"}), d.ofHelp)
	}},
	{"workflow-of-an-agent", "agent", "step.finish: a workflow is complete where a remote agent's plan says so with its reply", "only the task of a remote agent's plan", func(d *dishonest) int64 {
		return d.accepted(d.task.Intent("step.finish", catalog.StepFinish{TaskID: d.task.TaskID, Status: "done", Reply: "These.", WorkflowComplete: true}), ofShop)
	}},
	{"remote-agent-asked-by-any", "remote", "agent.ask: the agent is one that the plan's agent may ask", "may ask", func(d *dishonest) int64 {
		o, _ := d.done.AskIntent("help", "1.0", nil)
		d.plan = d.done.Plan
		return d.accepted(o, asTask(d.done, "any", ""), func(a *appended) { a.inputs.Task.Skills = []string{} })
	}},
}
