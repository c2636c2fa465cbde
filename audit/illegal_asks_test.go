package audit_test

import (
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
)

const deskAgent = `name: desk
description: Asks.
tools: [{server: crm, name: list}]
sub_agents: [shop, mail]
limits: {time_limit_sec: 300, max_fan_out: 2, request_limit: 3}
`

const mailAgent = `name: mail
description: Writes.
tools: [{server: crm, name: close}, {name: ask_agent}]
limits: {time_limit_sec: 30}
`

// desk begins a log with a plan of an agent whose task has asked two others: one lives, one
// has answered.
func (d *dishonest) desk() {
	d.Helper()
	d.Pin("crm.list", catalog.Pure)
	d.Pin("crm.close", catalog.Once)
	d.Data("approval", `{"once":false}`)
	d.Want(d.Admin("admin.put", catalog.AdminPut{Tenant: "default", Role: &catalog.RoleData{Role: "clerk", Capabilities: []string{"plans:*", "agents:run:desk"}}}), intents.OK)
	d.PushAgents(1, map[string]string{"desk": deskAgent, "mail": mailAgent, "shop": shopAgent})
	d.plan = d.BegunAgent("plan_1", "desk")
	d.task = d.plan.Started(1)
	d.deadline = d.Clock.Now().Add(5 * time.Minute).Format(time.RFC3339)
	d.child, d.done = d.task.MustAsk("mail", "1.0"), d.task.MustAsk("shop", "1.1")
	d.Want(d.child.Call("crm.close", `{"n":1}`), intents.OK)
	d.Want(d.done.Reply("These."), intents.OK)
}

// asTask makes the inputs of an intent those of an agent's task.
func asTask(t *routertest.Task, agent, skill string) func(*appended) {
	return func(a *appended) {
		a.inputs.Task = &intents.TaskInput{TaskID: t.TaskID, PlanID: t.ID, Step: t.Step, Agent: agent, Skills: []string{skill}, Deadline: a.inputs.Task.Deadline}
		if a.inputs.Skill == nil {
			return
		}
		effect := catalog.Pure
		if skill == "crm.close" {
			effect = catalog.Once
		}
		a.decision.Effect = string(effect)
		a.inputs.Skill = &intents.SkillInput{Name: skill, Digest: intents.Digest([]byte(skill)), Effect: string(effect), Trusted: true, OpenWorld: intents.No}
	}
}

// asks appends an ask of the task as accepted.
func (d *dishonest) asks(agent, call string, change func(t *routertest.Task, a *catalog.AgentAsk), more ...func(*routertest.Intent)) (int64, *routertest.Task) {
	d.Helper()
	o, child := d.task.AskIntent(agent, call, change)
	for _, m := range more {
		m(&o)
	}
	return d.accepted(o, asTask(d.task, "desk", "crm.list")), child
}

// asksAt is asks where only the position counts.
func (d *dishonest) asksAt(agent, call string, change func(t *routertest.Task, a *catalog.AgentAsk), more ...func(*routertest.Intent)) int64 {
	d.Helper()
	at, _ := d.asks(agent, call, change, more...)
	return at
}

// finishes appends the end of a task, as an agent's task reports it.
func (d *dishonest) finishes(by *routertest.Task, agent, skill string, f catalog.StepFinish) int64 {
	d.Helper()
	return d.accepted(by.Intent("step.finish", f), asTask(by, agent, skill))
}

// resumes makes another driver claim the plan and open the step again.
func (d *dishonest) resumes() {
	d.Helper()
	d.claims(2)
	var next *routertest.Task
	d.accepted(d.step(1, func(t *routertest.Task, _ *catalog.Step) { next = t }))
	d.task = next
}

// closes is a call of the living asked task.
func (d *dishonest) closes(change func(o *routertest.Intent)) int64 {
	d.Helper()
	o := d.child.CallIntent("crm.close", `{"n":2}`)
	if change != nil {
		change(&o)
	}
	return d.accepted(o, asTask(d.child, "mail", "crm.close"))
}

// asksLegally continues from the scene of asks as an honest router would.
func (d *dishonest) asksLegally() {
	d.Helper()
	d.closes(nil)
	d.closes(func(o *routertest.Intent) { o.Ctx.Occurrence = 1 })
	_, other := d.asks("mail", "1.2", nil)
	equal := other.CallIntent("crm.close", `{"n":1}`)
	d.accepted(equal, asTask(other, "mail", "crm.close"))
	d.finishes(d.task, "desk", "crm.list", catalog.StepFinish{TaskID: other.TaskID, Status: catalog.AskUnavailable, Reason: "hangs"})
	d.resumes()
	_, d.child = d.asks("mail", "1.0", nil) // continues
	d.closes(func(o *routertest.Intent) { o.Ctx.Occurrence = 2 })
	d.finishes(d.child, "mail", "crm.close", catalog.StepFinish{TaskID: d.child.TaskID, Status: "done", Reply: "Closed."})
	d.finishes(d.task, "desk", "crm.list", catalog.StepFinish{TaskID: d.task.TaskID, Status: "done", Reply: "These."})
	d.accepted(d.closing("complete"))
}

const onePerCall = "agent.ask: no task of the call lives or has answered"

var askMisdeeds = []misdeed{
	{"ask-of-a-stranger", "asking", "agent.ask: the agent is one that the plan's agent may ask", "may ask", func(d *dishonest) int64 {
		return d.asksAt("general", "1.2", nil)
	}},
	{"ask-by-the-asked", "asking", "a task's intent: its agent has a tool for the type", "has no tool for", func(d *dishonest) int64 {
		o, _ := d.child.AskIntent("shop", "1.0", nil)
		return d.accepted(o, asTask(d.child, "mail", "crm.close"))
	}},
	{"ask-for-another-task", "asking", "agent.ask: the task that asks is the key's own", "not the key's own task", func(d *dishonest) int64 {
		d.plan = d.BegunAgent("plan_2", "desk")
		d.records = slice(d.Records())
		other := d.task
		d.task = d.plan.Started(1)
		d.records = slice(d.Records())
		return d.asksAt("mail", "1.2", func(_ *routertest.Task, a *catalog.AgentAsk) { a.Parent, a.PlanID = other.TaskID, other.ID })
	}},
	{"ask-without-capability", "asking", "every intent: the actor's roles give the type's capability", "RBAC_FORBIDDEN", func(d *dishonest) int64 {
		return d.asksAt("mail", "1.2", nil, func(o *routertest.Intent) { o.Roles = []string{"clerk"} })
	}},
	{"ask-of-old-driver", "asking", "agent.ask: epoch is the plan's", "another driver", func(d *dishonest) int64 {
		return d.asksAt("mail", "1.2", func(_ *routertest.Task, a *catalog.AgentAsk) { a.Epoch = 2 })
	}},
	{"ask-without-call", "asking", "agent.ask: the context says which call it is", "which call", func(d *dishonest) int64 {
		return d.asksAt("mail", "1.2", nil, func(o *routertest.Intent) { o.Ctx.Call = "" })
	}},
	{"asked-while-it-lives", "asking", onePerCall, "asked by this call", func(d *dishonest) int64 {
		return d.asksAt("shop", "1.0", nil)
	}},
	{"asked-though-answered", "asking", onePerCall, "asked by this call", func(d *dishonest) int64 {
		return d.asksAt("mail", "1.1", nil)
	}},
	{"asked-though-unavailable", "asking", onePerCall, "asked by this call", func(d *dishonest) int64 {
		d.finishes(d.task, "desk", "crm.list", catalog.StepFinish{TaskID: d.child.TaskID, Status: catalog.AskUnavailable, Reason: "hangs"})
		d.resumes()
		return d.asksAt("shop", "1.0", nil)
	}},
	{"asked-past-the-deadline", "asking", onePerCall, "asked by this call", func(d *dishonest) int64 {
		d.Clock.Move(31 * time.Second)
		return d.asksAt("shop", "1.0", nil)
	}},
	{"asked-again-past-the-deadline", "asking", onePerCall, "asked by this call", func(d *dishonest) int64 {
		d.Clock.Move(31 * time.Second)
		d.resumes()
		return d.asksAt("mail", "1.0", nil)
	}},
	{"ask-beyond-its-task", "asking", "agent.ask: the deadline is not after that of the task that asks", "ends before", func(d *dishonest) int64 {
		d.Clock.Move(4*time.Minute + 45*time.Second)
		return d.asksAt("mail", "1.2", nil)
	}},
	{"ask-for-too-long", "asking", "agent.ask: the deadline is within the limits of both agents", "may take 60 s", func(d *dishonest) int64 {
		return d.asksAt("shop", "1.2", func(_ *routertest.Task, a *catalog.AgentAsk) {
			a.Deadline = d.Clock.Now().Add(61*time.Second + intents.Leeway).Format(time.RFC3339)
		})
	}},
	{"ask-beyond-its-agent", "asking", "agent.ask: the deadline is within the limits of both agents", "may take 30 s", func(d *dishonest) int64 {
		return d.asksAt("mail", "1.2", func(_ *routertest.Task, a *catalog.AgentAsk) {
			a.Deadline = d.Clock.Now().Add(31*time.Second + intents.Leeway).Format(time.RFC3339)
		})
	}},
	{"third-asked-task", "asking", "agent.ask: no more asked tasks live than the agent may ask at once", "2 asked agents live", func(d *dishonest) int64 {
		d.asksAt("mail", "1.2", nil)
		return d.asksAt("shop", "1.3", nil)
	}},
	{"fourth-call-that-asks", "asking", "agent.ask: no more calls of the step ask than the agent may make requests", "asked 3 times", func(d *dishonest) int64 {
		_, child := d.asks("shop", "1.2", nil)
		d.finishes(child, "shop", "crm.list", catalog.StepFinish{TaskID: child.TaskID, Status: "done", Reply: "Those."})
		return d.asksAt("shop", "2.0", nil)
	}},
	{"asked-task-twice", "asking", "agent.ask: no task of the tenant has the id", "id exists", func(d *dishonest) int64 {
		return d.asksAt("mail", "1.2", func(_ *routertest.Task, a *catalog.AgentAsk) { a.TaskID = d.done.TaskID })
	}},
	{"asked-task-untimed", "asking", "agent.ask: the id carries its time, at most an hour old and 5 s ahead", "Unix milliseconds", func(d *dishonest) int64 {
		return d.asksAt("mail", "1.2", func(_ *routertest.Task, a *catalog.AgentAsk) { a.TaskID = "task_1" })
	}},
	{"asked-with-a-used-key", "asking", "agent.ask: no task has had the key", "used for another task", func(d *dishonest) int64 {
		return d.asksAt("mail", "1.2", func(t *routertest.Task, _ *catalog.AgentAsk) { t.Key = d.done.Key })
	}},
	{"ask-changed", "asking", "agent.ask: the key proves that it is possessed", "SIGNATURE_INVALID", func(d *dishonest) int64 {
		return d.asksAt("mail", "1.2", nil, func(o *routertest.Intent) {
			a, _ := o.Args.(catalog.AgentAsk)
			a.Input = "Something else?"
			o.Args = a
		})
	}},

	{"asked-in-another-ask", "asking", "a task's intent: the context is its step's", "context", func(d *dishonest) int64 {
		return d.closes(func(o *routertest.Intent) { o.Ctx.Ask = "1.1" })
	}},
	{"asked-in-the-step", "asking", "a task's intent: the context is its step's", "context", func(d *dishonest) int64 {
		return d.closes(func(o *routertest.Intent) { o.Ctx.Ask = "" })
	}},
	{"asked-calls-what-its-asker-may", "asking", "a task's intent: its agent may call the skill", "not among those", func(d *dishonest) int64 {
		return d.accepted(d.child.CallIntent("crm.list", `{}`), asTask(d.child, "mail", "crm.list"), func(a *appended) { a.inputs.Task.Skills = []string{"crm.close"} })
	}},
	{"asked-outlives-its-asker", "asking", "a task's intent: the task has not ended", "the task that asked has ended", func(d *dishonest) int64 {
		d.finishes(d.task, "desk", "crm.list", catalog.StepFinish{TaskID: d.task.TaskID, Status: "done", Reply: "These."})
		return d.closes(nil)
	}},
	{"asked-outlives-a-claim", "asking", "a task's intent: the task has not ended", "the task that asked has ended", func(d *dishonest) int64 {
		d.resumes()
		return d.closes(nil)
	}},
	{"once-again-in-an-ask", "asking", "an intent of a plan: nothing that acts once is accepted again while it may have acted", "committed before", func(d *dishonest) int64 {
		return d.closes(func(o *routertest.Intent) {
			o.Args, o.Key = catalog.SkillCall{Skill: "crm.close", Input: []byte(`{"n":1}`)}, "again"
		})
	}},
	{"finished-by-another-task", "asking", "step.finish: a task ends itself, or one that it has asked for as unavailable", "not the key's own task", func(d *dishonest) int64 {
		return d.finishes(d.child, "mail", "crm.close", catalog.StepFinish{TaskID: d.task.TaskID, Status: "failed", Reason: "no"})
	}},
	{"finished-for-the-asked", "asking", "step.finish: a task ends itself, or one that it has asked for as unavailable", "not the key's own task", func(d *dishonest) int64 {
		return d.finishes(d.task, "desk", "crm.list", catalog.StepFinish{TaskID: d.child.TaskID, Status: "done", Reply: "These."})
	}},
	{"unavailable-to-itself", "asking", "step.finish: unavailable is said by the task that asked", "only the task that asked", func(d *dishonest) int64 {
		return d.finishes(d.child, "mail", "crm.close", catalog.StepFinish{TaskID: d.child.TaskID, Status: catalog.AskUnavailable, Reason: "no"})
	}},
	{"asked-held-by-nobody", "asking", "step.finish: held is said where an intent of the step waits, or one of the task has waited", "no intent of this step waits", func(d *dishonest) int64 {
		return d.finishes(d.child, "mail", "crm.close", catalog.StepFinish{TaskID: d.child.TaskID, Status: "held"})
	}},
}
