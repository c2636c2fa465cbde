package router_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/router/routertest"
)

const desk = `name: desk
description: Knows whom to ask.
tools: [{server: crm, name: list}]
sub_agents: [spoons, knives]
limits: {max_fan_out: 2, request_limit: 3}
`

const spoons = `name: spoons
description: Knows spoons.
tools: [{server: spoon, name: buy}, {name: ask_agent}]
limits: {time_limit_sec: 90}
`

const knives = `name: knives
description: Knows knives.
tools: [{server: knife, name: buy}, {name: write_memory}]
limits: {time_limit_sec: 40}
`

// asking is a world with a plan of desk, and its task.
func asking(t *testing.T) (*routertest.World, *routertest.Plan, *routertest.Task) {
	t.Helper()
	w := routertest.New(t, routertest.Options{})
	for _, skill := range []string{"crm.list", "spoon.buy", "knife.buy"} {
		w.Pin(skill, catalog.Once)
	}
	w.PushAgents(1, map[string]string{"desk": desk, "spoons": spoons, "knives": knives})
	p := w.BegunAgent("p", "desk")
	return w, p, p.Started(1)
}

// TestAsk: the task of an agent's plan asks another agent for one of its calls. The task
// of that has its agent's skills and no others, and what it says is not the plan's answer.
func TestAsk(t *testing.T) {
	w, p, task := asking(t)
	o, child := task.AskOrder("spoons", "1.0", nil)
	got := routertest.Result[catalog.AgentAskResult](w, w.Want(w.Do(o), intents.OK))
	want := catalog.AgentAskResult{TaskID: child.TaskID, Skills: []string{"spoon.buy"}}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	w.Want(child.Call("spoon.buy", `{}`), intents.OK)
	refused(t, child.Call("crm.list", `{}`), intents.TaskScope, "not among those")
	w.Want(child.Reply("Two spoons."), intents.OK)
	if v := p.View(); v.Response != "" || v.Steps[0].Status != catalog.StepRunning {
		t.Errorf("the plan after the asked agent has answered: %+v", v)
	}
	w.Want(task.Call("crm.list", `{}`), intents.OK)
	w.Want(task.Reply("Spoons, two."), intents.OK)
	w.Restart()
}
