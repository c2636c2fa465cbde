package audit_test

import (
	"encoding/json"
	"strings"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
	"aob.dev/writ/state"
)

const shopAgent = `name: shop
description: Sells.
tools: [{server: crm, name: list}]
limits: {time_limit_sec: 300}
`

// shop begins a log with an agent in force, a plan of it, and its task.
func (d *dishonest) shop() {
	d.Helper()
	d.acme()
	d.Pin("crm.list", catalog.Pure)
	d.Pin("crm.close", catalog.Pure)
	d.Want(d.Admin("admin.put", catalog.AdminPut{Tenant: "default", Role: &catalog.RoleData{Role: "clerk", Capabilities: []string{"plans:*"}}}), intents.OK)
	d.PushAgents(1, map[string]string{"shop": shopAgent})
	d.PushAgents(2, map[string]string{"shop": strings.Replace(shopAgent, "Sells", "Sells all", 1)})
	d.Want(d.Admin("registry.push", d.storesAgents("acme", 1, map[string]string{"shop": shopAgent})), intents.OK)
	second := d.AddOperator("system", "eve", "approver")
	held := d.Want(d.Admin("registry.push", d.RegistryOf("acme", 2, map[string]string{"general": strings.Replace(shopAgent, "name: shop", "name: general", 1)})), intents.ApprovalRequired)
	d.Want(d.Do(routertest.Intent{By: second, User: "eve", Tenant: "system", Type: "hitl.approve", Args: catalog.Approve{IntentID: held.IntentID, Decision: catalog.DecisionApprove}}), intents.OK)
	d.plan = d.BegunAgent("plan_1", "shop")
	d.task = d.plan.Started(1)
	d.deadline = d.Clock.Now().Add(5 * time.Minute).Format(time.RFC3339)
	d.Want(d.task.Call("crm.list", `{}`), intents.OK)
}

// pushes appends a registry.push as accepted, with the scopes of its content.
func (d *dishonest) pushes(tenant string, revision int64, file string, change func(a *catalog.RegistryPush)) int64 {
	d.Helper()
	return d.pushesAs(routertest.Intent{By: d.Operator}, tenant, revision, file, change)
}

func (d *dishonest) pushesAs(o routertest.Intent, tenant string, revision int64, file string, change func(a *catalog.RegistryPush)) int64 {
	d.Helper()
	a := d.RegistryOf(tenant, revision, map[string]string{"shop": file})
	scopes, err := state.ScopesOf(a, nil)
	d.Must(err)
	if change != nil {
		change(&a)
	}
	if a.Bundle != "" {
		if other, err := state.ScopesOf(a, nil); err == nil {
			scopes = other
		}
	}
	raw, err := json.Marshal(scopes)
	d.Must(err)
	o.Type, o.Args = "registry.push", a
	return d.accepted(o, func(x *appended) {
		if a.Bundle != "" {
			x.inputs.Scopes = raw
		}
	})
}

// storesAgents stores agents under their digest, and returns the intent that pushes them.
func (d *dishonest) storesAgents(tenant string, revision int64, files map[string]string) catalog.RegistryPush {
	d.Helper()
	r := d.Registry(files)
	d.Must(r.Keep(func(content []byte) error { d.blobs.put(content); return nil }))
	return catalog.RegistryPush{Tenant: tenant, Revision: revision, Digest: r.Digest()}
}

// ofShop makes the inputs of an intent those of the agent's task.
func ofShop(a *appended) {
	a.inputs.Task.Agent, a.inputs.Task.Skills, a.inputs.Task.Revision = "shop", []string{"crm.list"}, 0
	if a.inputs.Skill != nil {
		a.inputs.Skill = &intents.SkillInput{Name: "crm.list", Digest: intents.Digest([]byte("crm.list")), Effect: string(catalog.Pure), Trusted: true, OpenWorld: intents.No}
	}
}

// opensAgent is plan.open of an agent.
func (d *dishonest) opensAgent(agent string, roles ...string) routertest.Intent {
	p := d.NewPlan("plan_2")
	p.Roles = roles
	return p.OpenAgentIntent(agent)
}

var agentMisdeeds = []misdeed{
	{"agents-taken-back", "agent", "registry.push: revision is higher than the one in force", "only a higher one", func(d *dishonest) int64 {
		return d.pushes("default", 2, shopAgent, nil)
	}},
	{"agents-of-system-by-gateway", "agent", "registry.push: a gateway signs it for no user of system", "key of an operator", func(d *dishonest) int64 {
		return d.pushesAs(routertest.Intent{By: d.Gateway, User: "local", Tenant: "system", Roles: []string{"admin"}, Ctx: intents.Context{TurnID: "turn_agents"}}, "default", 3, shopAgent, nil)
	}},
	{"agents-of-no-tenant", "agent", "registry.push: the tenant is there", "no such tenant", func(d *dishonest) int64 {
		return d.pushes("nowhere", 1, shopAgent, nil)
	}},
	{"agents-unsound", "agent", "registry.push: every set of agents with it is sound", "there is no agent nobody", func(d *dishonest) int64 {
		return d.pushes("default", 3, shopAgent+"sub_agents: [nobody]\n", nil)
	}},
	{"registry-replaces-unapproved", "agent", "registry.push: the built-in agent general is replaced for one tenant, once a second person has approved it", "replaces a built-in agent", func(d *dishonest) int64 {
		return d.pushes("default", 3, strings.Replace(shopAgent, "name: shop", "name: general", 1), nil)
	}},
	{"registry-replaces-for-all", "agent", "registry.push: the built-in agent general is replaced for one tenant, once a second person has approved it", "replace", func(d *dishonest) int64 {
		return d.pushes("", 1, strings.Replace(shopAgent, "name: shop", "name: general", 1), nil)
	}},
	{"agents-of-other-content", "agent", "registry.push: digest and scopes are those of the content", "another digest", func(d *dishonest) int64 {
		return d.pushes("default", 3, shopAgent, func(a *catalog.RegistryPush) { a.Digest = intents.Digest([]byte("other")) })
	}},
	{"agents-from-nowhere", "agent", "registry.push: without content in the intent it is the revision before, or content that is kept", "not the digest of the revision before", func(d *dishonest) int64 {
		return d.pushes("default", 3, shopAgent+"temperature: 0\n", func(a *catalog.RegistryPush) { a.Bundle = "" })
	}},
	{"agents-of-other-scopes", "agent", "registry.push: digest and scopes are those of the content", "not those of the content", func(d *dishonest) int64 {
		a := d.storesAgents("acme", 2, map[string]string{"shop": shopAgent + "temperature: 0\n"})
		return d.accepted(routertest.Intent{By: d.Operator, Type: "registry.push", Args: a}, func(x *appended) {
			x.inputs.Scopes = json.RawMessage(`{"agents":[]}`)
		})
	}},
	{"agent-not-there", "agent", "plan.open: its agent is there and can be run", "no such agent", func(d *dishonest) int64 {
		return d.accepted(d.opensAgent("nobody"))
	}},
	{"agent-without-capability", "agent", "every intent: the actor's roles give the type's capability", "RBAC_FORBIDDEN", func(d *dishonest) int64 {
		return d.accepted(d.opensAgent("shop", "clerk"))
	}},
	{"agent-planned", "agent", "plan: the plan is no agent's", "nobody plans it", func(d *dishonest) int64 {
		return d.accepted(d.revision(1, routertest.Steps(1, "crm.list")))
	}},
	{"agent-for-too-long", "agent", "step: the deadline is within the agent's time limit", "may take 300 s", func(d *dishonest) int64 {
		return d.accepted(d.step(1, func(_ *routertest.Task, a *catalog.Step) {
			a.Deadline = d.Clock.Now().Add(301*time.Second + intents.Leeway).Format(time.RFC3339)
		}))
	}},
	{"agent-signs-another-type", "agent", "a task's intent: its agent has a tool for the type", "has no tool for", func(d *dishonest) int64 {
		return d.accepted(d.task.Intent("write_temp", catalog.WriteTemp{Data: json.RawMessage(`1`)}), ofShop)
	}},
	{"agent-calls-another-skill", "agent", "a task's intent: its agent may call the skill", "not among those", func(d *dishonest) int64 {
		return d.accepted(d.task.CallIntent("crm.close", `{}`), ofShop, func(a *appended) {
			a.inputs.Skill = &intents.SkillInput{Name: "crm.close", Digest: intents.Digest([]byte("crm.close")), Effect: string(catalog.Pure), Trusted: true, OpenWorld: intents.No}
		})
	}},
	{"agent-loads-another-skill", "agent", "a task's intent: its agent may call the skill", "one of the skills is not among those", func(d *dishonest) int64 {
		return d.accepted(d.task.Intent("skill.load", catalog.SkillLoad{Skills: []string{"crm.list", "crm.close"}}), ofShop, func(a *appended) {
			a.result = catalog.SkillLoadResult{Skills: []catalog.Manifest{}}
		})
	}},
	{"agent-without-reply", "agent", "step.finish: the task of an agent's plan, and no other, is done with a reply", "ends with a reply", func(d *dishonest) int64 {
		return d.accepted(d.task.Intent("step.finish", catalog.StepFinish{TaskID: d.task.TaskID, Status: "done", MemoryKey: d.task.MemoryKey("result")}), ofShop)
	}},
	{"agent-answer-changed", "agent", "plan.close: a plan of an agent is closed with its reply", "the agent's reply", func(d *dishonest) int64 {
		d.accepted(d.task.Intent("step.finish", catalog.StepFinish{TaskID: d.task.TaskID, Status: "done", Reply: "Those."}), ofShop)
		return d.accepted(d.closing("complete"))
	}},
	{"agent-asks-back", "agent", "plan.close: only a planner's plan ends with a question to its user", "ends with a question", func(d *dishonest) int64 {
		return d.accepted(d.closing("needs_input"))
	}},
	{"agent-of-a-planner", "running", "agent.get: the plan is open, and an agent's", "no agent runs the step", func(d *dishonest) int64 {
		return d.accepted(d.task.Intent("agent.get", catalog.AgentGet{}))
	}},
}
