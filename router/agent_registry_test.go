package router_test

import (
	"strings"
	"testing"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
	"aob.dev/writ/state/agents"
)

// The agents of these tests.
const (
	shop = `
name: shop
description: Sells.
instructions: Sell dear.
tools: [{server: crm, name: list}, {server: mail}]
limits: {time_limit_sec: 300}
`
	cheap = `
name: shop
description: Sells.
instructions: Sell cheap.
tools: [{server: crm, name: list}]
`
	lonely = `
name: lonely
description: Asks somebody who is not there.
sub_agents: [nobody]
`
)

func refused(t *testing.T, a *intents.Answer, code intents.Code, words string) {
	t.Helper()
	if a.Code != code || !strings.Contains(a.Reason, words) {
		t.Errorf("%s %q, want %s with %q", a.Code, a.Reason, code, words)
	}
}

// TestRegistryPush: a revision is put in force; a lower one and one that breaks a rule are refused
// as a whole; the previous one is returned without its content; and the state is the same after a
// restart.
func TestRegistryPush(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	w.PushAgents(1, map[string]string{"shop": shop})
	first := w.RegistryOf("default", 1, map[string]string{"shop": shop})
	refused(t, w.Admin("registry.push", w.RegistryOf("default", 1, map[string]string{"shop": cheap})), intents.MalformedArgs, "revision 1 is in force")
	refused(t, w.Admin("registry.push", w.RegistryOf("default", 2, map[string]string{"shop": cheap, "lonely": lonely})), intents.MalformedArgs, "agent lonely: /sub_agents/0: there is no agent nobody")
	refused(t, w.Admin("registry.push", w.RegistryOf("nowhere", 2, map[string]string{"shop": cheap})), intents.MalformedArgs, "no such tenant")
	other := w.RegistryOf("default", 2, map[string]string{"shop": cheap})
	other.Digest = first.Digest
	refused(t, w.Admin("registry.push", other), intents.MalformedArgs, "another digest")
	if rows, _ := w.Dir.Rows("default"); rows.Registry == nil || rows.Registry.Revision != 1 || rows.Registry.Digest != first.Digest {
		t.Fatalf("in force: %+v", rows.Registry)
	}
	refused(t, w.Admin("registry.push", catalog.RegistryPush{Tenant: "default", Revision: 2, Digest: first.Digest}), intents.MalformedArgs, "not the digest of the revision before")
	w.PushAgents(2, map[string]string{"shop": cheap})
	w.Want(w.Admin("registry.push", catalog.RegistryPush{Tenant: "default", Revision: 3, Digest: first.Digest}), intents.OK)
	w = w.Restart()
	if rows, _ := w.Dir.Rows("default"); rows.Registry == nil || rows.Registry.Revision != 3 || rows.Registry.Digest != first.Digest || rows.Registry.Before == "" {
		t.Errorf("after a revert: %+v", rows.Registry)
	}

	// A push by system is judged for every tenant: lonely's nobody exists for default alone.
	w.PushAgents(4, map[string]string{"nobody": strings.Replace(cheap, "name: shop", "name: nobody", 1)})
	w.PushAgents(5, map[string]string{"nobody": strings.Replace(cheap, "name: shop", "name: nobody", 1), "lonely": lonely})
	refused(t, w.Admin("registry.push", w.RegistryOf("", 1, map[string]string{"lonely": lonely})), intents.MalformedArgs, "tenant system: agent lonely")
	w.Want(w.Admin("registry.push", w.RegistryOf("", 1, map[string]string{"shop": shop})), intents.OK)
	own := strings.Replace(shop, "dear", "here", 1)
	w.PushAgents(6, map[string]string{"shop": own})
	p := w.BegunAgent("p", "shop")
	got := routertest.Result[catalog.AgentGetResult](w, w.Want(w.Do(routertest.Intent{By: w.Manager, Type: "agent.get", Args: catalog.AgentGet{}, Ctx: intents.Context{PlanID: p.ID}}), intents.OK))
	if got.Text != own {
		t.Errorf("the tenant's own agent comes before that of system: %q", got.Text)
	}
}

// TestAgentPlan: a plan of an agent has one step and continues with the revision that it began
// with. The router restricts its task to the agent's tools, whoever signs; its reply closes the
// plan.
func TestAgentPlan(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	for _, skill := range []string{"crm.list", "crm.close", "mail.send"} {
		w.Pin(skill, catalog.Idempotent)
	}
	w.PushAgents(1, map[string]string{"shop": shop})
	refused(t, w.Do(w.NewPlan("near").OpenAgentIntent("shup")), intents.MalformedArgs, "did you mean shop?")
	refused(t, w.Do(w.NewPlan("planner").OpenAgentIntent("planner")), intents.MalformedArgs, "no such agent that can be run")
	w.Want(w.Admin("admin.put", catalog.AdminPut{Tenant: "default", Role: &catalog.RoleData{Role: "clerk", Capabilities: []string{"plans:*", "agents:run:general"}}}), intents.OK)
	clerk := w.NewPlan("clerk")
	clerk.Roles = []string{"clerk"}
	refused(t, w.Do(clerk.OpenAgentIntent("shop")), intents.RBACForbidden, "agents:run:shop")
	w.Want(w.Do(clerk.OpenAgentIntent("general")), intents.OK)

	p := w.BegunAgent("p", "shop")
	refused(t, p.Plan(routertest.Steps(1, "crm.list")), intents.MalformedArgs, "nobody plans it")
	late := p.NewTask(1)
	a := late.StepArgs()
	a.Deadline = w.Clock.Now().Add(10 * time.Minute).Format(time.RFC3339)
	refused(t, p.Do(p.StepIntent(late.Proved(a))), intents.MalformedArgs, "may take 300 s")
	task := p.Started(1)
	w.PushAgents(2, map[string]string{"shop": cheap})
	w.PushAgents(3, map[string]string{"shop": cheap + "temperature: 0\n"}) // the first is not even the previous one
	w = w.Restart()
	task.Plan = task.On(w)
	got := routertest.Result[catalog.AgentGetResult](w, w.Want(w.Do(task.Intent("agent.get", catalog.AgentGet{})), intents.OK))
	if got.Agent != "shop" || !strings.Contains(got.Text, "Sell dear.") || got.TimeLimitSec != 300 {
		t.Errorf("agent of the plan: %+v", got)
	}
	w.Want(task.Call("crm.list", `{}`), intents.OK)
	w.Want(task.Call("mail.send", `{}`), intents.OK)
	refused(t, task.Call("crm.close", `{}`), intents.TaskScope, "not among those")
	w.Want(w.Do(task.Intent("skill.load", catalog.SkillLoad{Skills: []string{"crm.list", "mail.send"}})), intents.OK)
	refused(t, w.Do(task.Intent("skill.load", catalog.SkillLoad{Skills: []string{"crm.list", "crm.close"}})), intents.TaskScope, "one of the skills is not among those")
	w.Want(w.Do(task.Intent("skill.find", catalog.SkillFind{Query: "list"})), intents.OK) // of its own alone, by the ticket
	refused(t, task.Write("result"), intents.TaskScope, "the agent shop has no tool")
	refused(t, task.Finish("done", task.MemoryKey("result"), ""), intents.MalformedArgs, "ends with a reply")
	refused(t, task.Complete(), intents.MalformedArgs, "all its steps are done")
	w.Want(task.Reply("Those."), intents.OK)
	refused(t, task.Complete(), intents.MalformedArgs, "the agent's reply")
	close := catalog.PlanClose{PlanID: p.ID, Epoch: p.Epoch, Status: "complete", Response: "Those."}
	w.Want(w.Do(routertest.Intent{By: w.Manager, Type: "plan.close", Args: close, Ctx: intents.Context{PlanID: p.ID}}), intents.OK)
	if v := task.View(); v.Agent != "shop" || v.Response != "Those." || v.Revision != 0 {
		t.Errorf("closed: %+v", v)
	}

	// The next plan has the current revision. A failed agent is not planned again.
	p = w.BegunAgent("q", "shop")
	task = p.Started(1)
	got = routertest.Result[catalog.AgentGetResult](w, w.Want(w.Do(task.Intent("agent.get", catalog.AgentGet{})), intents.OK))
	if !strings.Contains(got.Text, "Sell cheap.") {
		t.Errorf("agent of the next plan: %+v", got)
	}
	w.Want(task.Finish("failed", "", "it did not work"), intents.OK)
	if v := p.View(); v.Status != catalog.PlanExecuting || v.ReplanCount != 0 || v.Steps[0].Status != catalog.StepFailed {
		t.Errorf("failed: %+v", v)
	}
	refused(t, p.Do(p.StepIntent(p.NewTask(1).StepArgs())), intents.MalformedArgs, "the step is failed")
	w.Want(p.Fail(), intents.OK)
	w.Restart()
}

// TestGeneralIsReplaced: one tenant's own agent replaces general once a second person has approved
// it. The built-in one stays reachable, and no other built-in agent can be replaced.
func TestGeneralIsReplaced(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	const own = "name: general\ndescription: Ours.\ntools: [{server: crm, name: list}]\n"
	w.Pin("crm.list", catalog.Pure)
	refused(t, w.Admin("registry.push", w.RegistryOf("", 1, map[string]string{"general": own})), intents.MalformedArgs, "only one tenant's own agents may replace")
	push := w.RegistryOf("default", 1, map[string]string{"general": own})
	refused(t, w.Admin("registry.push", push), intents.PolicyDenied, "")
	second := w.AddOperator("system", "eve", "approver")
	held := w.Want(w.Admin("registry.push", push), intents.ApprovalRequired)
	approve := catalog.Approve{IntentID: held.IntentID, Decision: catalog.DecisionApprove}
	w.Want(w.Admin("hitl.approve", approve), intents.RBACForbidden)
	agentOf := func(name, plan string) catalog.AgentGetResult {
		p := w.BegunAgent(plan, name)
		return routertest.Result[catalog.AgentGetResult](w, w.Want(w.Do(routertest.Intent{By: w.Manager, Type: "agent.get", Args: catalog.AgentGet{}, Ctx: intents.Context{PlanID: p.ID}}), intents.OK))
	}
	if got := agentOf("general", "before"); got.Text != "" {
		t.Errorf("before anybody has approved it, general is %+v", got)
	}
	w.Want(w.Do(routertest.Intent{By: second, User: "eve", Tenant: "system", Type: "hitl.approve", Args: approve}), intents.OK)
	w = w.Restart()
	if got := agentOf("general", "after"); got.Text != own {
		t.Errorf("general is %+v", got)
	}
	if got := agentOf(agents.BuiltinGeneral, "builtin"); got.Text != "" || got.Agent != agents.BuiltinGeneral || agents.Builtin(got.Agent).Name != agents.General {
		t.Errorf("the built-in one is %+v", got)
	}
	w.Want(w.Admin("registry.push", w.RegistryOf("default", 2, map[string]string{"shop": shop})), intents.OK)
	if got := agentOf("general", "again"); got.Text != "" {
		t.Errorf("without it, general is %+v", got)
	}
	refused(t, w.Do(w.NewPlan("planner").OpenAgentIntent("writ/planner")), intents.MalformedArgs, "no such agent that can be run")
}
