package router_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
)

const asker = `
name: asker
description: Sells and asks.
tools: [{server: crm, name: list}, {server: crm, name: close, approval: {roles: [approver]}}, {name: ask_agent}]
limits: {time_limit_sec: 60}
`

// byAgent is a step that an agent executes.
func byAgent(n int, agent string) catalog.PlanStep {
	return catalog.PlanStep{Step: n, Task: "Sell.", Skills: []string{}, Agent: agent, ReturnSpec: catalog.ReturnSpec{Shape: "string", Reason: "to tell"}}
}

// TestAgentStep: an agent of the registry executes a step of a planner's plan as the agent was when
// the plan was opened, under the agent's tools, holds and time limit; its reply is the result of
// the step.
func TestAgentStep(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	for _, skill := range []string{"crm.list", "crm.close", "feed"} {
		w.Pin(skill, catalog.Pure)
	}
	user(w, "ben", "approver")
	w.PushAgents(1, map[string]string{"asker": asker})
	w.Want(w.Admin("admin.put", catalog.AdminPut{Tenant: "default", Role: &catalog.RoleData{Role: "clerk", Capabilities: []string{"plans:*"}}}), intents.OK)
	planned := func(id string, roles ...string) *routertest.Plan {
		p := w.NewPlan(id)
		p.Roles = roles
		p.Want(p.Open(), intents.OK)
		p.Want(p.Claim(), intents.OK)
		return p
	}
	offered := func(p *routertest.Plan) []catalog.OtherAgent {
		o := routertest.Intent{By: w.Planner, Type: "agent.get", Args: catalog.AgentGet{}, Roles: p.Roles, Ctx: intents.Context{PlanID: p.ID}}
		return routertest.Result[catalog.AgentGetResult](w, w.Want(w.Do(o), intents.OK)).Others
	}
	p := planned("p")
	if got := offered(p); len(got) != 1 || got[0].Agent != "asker" || got[0].Description != "Sells and asks." {
		t.Errorf("a planner is told of %+v", got)
	}
	clerk := planned("clerk", "clerk")
	if got := offered(clerk); len(got) != 0 {
		t.Errorf("who may run no agent is offered %+v", got)
	}
	refused(t, clerk.Plan([]catalog.PlanStep{byAgent(1, "asker")}), intents.RBACForbidden, "agents:run:asker")
	both := byAgent(1, "asker")
	both.Skills = []string{"feed"}
	refused(t, p.Plan([]catalog.PlanStep{both}), intents.MalformedArgs, "no skills of its own")
	refused(t, p.Plan([]catalog.PlanStep{byAgent(1, "executor")}), intents.MalformedArgs, "no such agent that can be run")
	refused(t, p.Plan([]catalog.PlanStep{byAgent(1, "askre")}), intents.MalformedArgs, "did you mean asker?")

	// A step of skills, then one of the agent. Meanwhile the registry gets another agent.
	w.PushAgents(2, map[string]string{"asker": strings.Replace(asker, "Sells", "Buys", 1)})
	second := byAgent(2, "asker")
	second.Inputs = []int{1}
	p.Want(p.Plan(append(routertest.Steps(1, "feed"), second)), intents.OK)
	key := p.Started(1).Done()
	w = w.Restart()
	p = p.On(w)
	got := routertest.Result[catalog.AgentGetResult](w, w.Want(w.Do(routertest.Intent{By: w.Manager, Type: "agent.get", Args: catalog.AgentGet{}, Ctx: intents.Context{PlanID: p.ID, Step: 2}}), intents.OK))
	if got.Agent != "asker" || !strings.Contains(got.Text, "Sells") || got.TimeLimitSec != 60 {
		t.Errorf("agent of the step: %+v", got)
	}
	refused(t, w.Do(routertest.Intent{By: w.Manager, Type: "agent.get", Args: catalog.AgentGet{}, Ctx: intents.Context{PlanID: p.ID, Step: 1}}), intents.MalformedArgs, "no agent runs the step")
	late := p.NewTask(2)
	a := late.StepArgs()
	a.Deadline = w.Clock.Now().Add(2 * time.Minute).Format(time.RFC3339)
	refused(t, p.Do(p.StepIntent(late.Proved(a))), intents.MalformedArgs, "may take 60 s")
	task := p.NewTask(2)
	a = task.StepArgs()
	a.Deadline = w.Clock.Now().Add(time.Minute).Format(time.RFC3339)
	p.Want(p.Do(p.StepIntent(task.Proved(a))), intents.OK)
	w.Want(w.Do(task.Intent("read_memory", catalog.ReadMemory{Key: key})), intents.OK)
	w.Want(task.Call("crm.list", `{}`), intents.OK)
	refused(t, task.Call("feed", `{}`), intents.TaskScope, "not among those")
	w.Want(task.Call("crm.close", `{}`), intents.ApprovalRequired)
	refused(t, w.Do(task.Intent("write_temp", catalog.WriteTemp{Data: json.RawMessage(`1`)})), intents.TaskScope, "the agent asker has no tool")
	refused(t, task.Reply("Those."), intents.MalformedArgs, "and no other does")
	w.Want(task.Write("result"), intents.OK)
	w.Want(task.Finish("done", task.MemoryKey("result"), ""), intents.OK)
	w.Want(p.Complete(), intents.OK)

	// An agent that was replaced twice since the plan was opened no longer exists.
	q := planned("q")
	w.PushAgents(3, map[string]string{"asker": strings.Replace(asker, "Sells", "Rents", 1)})
	w.PushAgents(4, map[string]string{"asker": strings.Replace(asker, "Sells", "Lends", 1)})
	if got := offered(q); len(got) != 0 {
		t.Errorf("offered %+v", got)
	}
	refused(t, q.Plan([]catalog.PlanStep{byAgent(1, "asker")}), intents.MalformedArgs, "replaced twice")
	q.Want(q.Plan(routertest.Steps(1, "feed")), intents.OK)
	w.Restart()
}
