package audit_test

import (
	"fmt"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
)

// routing begins a log with three agents that requests are routed to, and a plan opened for routing
// that is not routed yet.
func (d *dishonest) routing() {
	d.Helper()
	d.acme()
	d.Want(d.Admin("admin.put", catalog.AdminPut{Tenant: "default", Role: &catalog.RoleData{Role: "clerk", Capabilities: []string{"plans:*", "agents:run:front"}}}), intents.OK)
	d.PushAgents(1, routertest.Desk)
	d.plan, _ = d.OpenRouted("plan_1", "S1", routertest.DefaultRouting)
}

// clarifying continues with a question to the user, and the plan of the user's answer.
func (d *dishonest) clarifying() {
	d.Helper()
	d.routing()
	d.Want(d.plan.Routed(route("password", 0.4, catalog.RouteClarify), "", "These."), intents.OK)
	d.Want(d.plan.Complete(), intents.OK)
	d.plan, _ = d.OpenRouted("plan_2", "S1", routertest.DefaultRouting)
}

// routed continues with a turn of an agent.
func (d *dishonest) routed() {
	d.Helper()
	d.routing()
	d.Want(d.plan.Routed(route("password", 0.9, catalog.RouteConfident), "password", ""), intents.OK)
	d.task = d.plan.Started(1)
	d.deadline = d.Clock.Now().Add(5 * time.Minute).Format(time.RFC3339)
}

// diverted continues with failures that open the breaker of an agent.
func (d *dishonest) diverted() {
	d.Helper()
	d.routing()
	d.Pin("leave.call", catalog.Pure)
	down := routertest.Failed(intents.ExecutorFailed)
	down.Transport = &intents.Transport{Failure: true}
	d.Bus.On("skill.call", routertest.Always(down))
	task := d.Begun("plan_3", "leave.call").Started(1)
	for n := range 5 {
		d.Want(task.Call("leave.call", fmt.Sprintf(`{"n":%d}`, n)), intents.ExecutorFailed)
	}
}

// left continues with the end of that turn.
func (d *dishonest) left() {
	d.Helper()
	d.routed()
	d.Want(d.task.Reply("These."), intents.OK)
	d.Want(d.plan.Complete(), intents.OK)
}

// open records agents whose breaker is open.
func open(agents ...string) func(*appended) {
	return func(a *appended) { a.inputs.OpenAgents = agents }
}

func route(agent string, confidence float64, decision string) catalog.Route {
	return catalog.Route{Agent: agent, Confidence: confidence, Decision: decision}
}

// enters opens and claims another plan for routing, and begins the task of its agent.
func (d *dishonest) enters(routing catalog.Routing) int64 {
	d.Helper()
	p := d.NewPlan("plan_2")
	p.Epoch = 1
	_, p.Digest = d.accept(p.OpenRoutedIntent(routing, "S1"))
	d.accepted(p.ClaimIntent(1))
	return d.accepted(p.StepIntent(p.NewTask(1).StepArgs()))
}

// entersLegally continues the routing scenes as an honest router would have.
func (d *dishonest) entersLegally(scene string) {
	d.Helper()
	switch scene {
	case "unrouted":
		_, d.plan.Digest = d.accept(d.plan.RouteIntent(route("leave", 0.5, catalog.RouteConfident), "leave", ""))
		d.accepted(d.step(1, nil))
	case "diverted":
		_, d.plan.Digest = d.accept(d.plan.RouteIntent(route("leave", 0.9, catalog.RouteBreaker), "front", ""), open("leave"))
		d.accepted(d.step(1, nil))
	case "clarifying":
		_, d.plan.Digest = d.accept(d.plan.RouteIntent(route("password", 0.4, catalog.RouteDefault), "front", ""))
		d.accepted(d.step(1, nil))
	case "left":
		d.Clock.Move(30*time.Minute - time.Millisecond)
		d.enters(routertest.DefaultRouting)
	}
}

var routingMisdeeds = []misdeed{
	{"routed-by-planner", "unrouted", "plan: a manager signs plans with a route, and a planner others", "managers those that are routed", func(d *dishonest) int64 {
		o := d.plan.RouteIntent(route("leave", 0.9, catalog.RouteConfident), "leave", "")
		o.By = d.Planner
		return d.accepted(o)
	}},
	{"planned-by-manager", "claimed", "plan: a manager signs plans with a route, and a planner others", "managers those that are routed", func(d *dishonest) int64 {
		o := d.revision(1, routertest.Steps(1, "feed"))
		o.By = d.Manager
		return d.accepted(o)
	}},
	{"planned-though-unrouted", "unrouted", "plan: a plan that was opened for routing is routed, and no other", "a manager routes it", func(d *dishonest) int64 {
		return d.accepted(d.revision(1, routertest.Steps(1, "feed")))
	}},
	{"routed-though-planned", "claimed", "plan: a plan that was opened for routing is routed, and no other", "not opened for routing", func(d *dishonest) int64 {
		return d.accepted(d.plan.RouteIntent(route("leave", 0.9, catalog.RouteConfident), "leave", ""))
	}},
	{"routed-twice", "routed", "plan: the plan is no agent's", "nobody plans it", func(d *dishonest) int64 {
		return d.accepted(d.plan.RouteIntent(route("leave", 0.9, catalog.RouteConfident), "leave", ""))
	}},
	{"routed-below-the-threshold", "unrouted", "plan: the decision of a route is that of the tree", "makes it clarify", func(d *dishonest) int64 {
		return d.accepted(d.plan.RouteIntent(route("password", 0.79, catalog.RouteConfident), "password", ""))
	}},
	{"routed-though-ambiguous", "unrouted", "plan: the decision of a route is that of the tree", "makes it default", func(d *dishonest) int64 {
		r := route("leave", 1, catalog.RouteConfident)
		r.Ambiguous = true
		return d.accepted(d.plan.RouteIntent(r, "leave", ""))
	}},
	{"routed-to-the-default", "unrouted", "plan: the decision of a route is that of the tree", "makes it confident", func(d *dishonest) int64 {
		return d.accepted(d.plan.RouteIntent(route("leave", 0.9, catalog.RouteDefault), "front", ""))
	}},
	{"routed-as-known", "unrouted", "plan: the decision of a route is that of the tree", "makes it unknown", func(d *dishonest) int64 {
		return d.accepted(d.plan.RouteIntent(route("nobody", 1, catalog.RouteConfident), "front", ""))
	}},
	{"routed-though-broken", "diverted", "plan: the decision of a route is that of the tree", "makes it breaker", func(d *dishonest) int64 {
		return d.accepted(d.plan.RouteIntent(route("leave", 0.9, catalog.RouteConfident), "leave", ""), open("leave"))
	}},
	{"diverted-though-well", "diverted", "plan: the decision of a route is that of the tree", "makes it confident", func(d *dishonest) int64 {
		return d.accepted(d.plan.RouteIntent(route("leave", 0.9, catalog.RouteBreaker), "front", ""))
	}},
	{"clarified-twice", "clarifying", "plan: the decision of a route is that of the tree", "makes it default", func(d *dishonest) int64 {
		return d.accepted(d.plan.RouteIntent(route("password", 0.4, catalog.RouteClarify), "", "These?"))
	}},
	{"routed-to-another", "unrouted", "plan: a routed plan has one step, of the decision's agent, or asks the user", "of the agent front", func(d *dishonest) int64 {
		return d.accepted(d.plan.RouteIntent(route("nobody", 1, catalog.RouteUnknown), "leave", ""))
	}},
	{"routed-to-nobody", "unrouted", "plan: a routed plan has one step, of the decision's agent, or asks the user", "of the agent leave", func(d *dishonest) int64 {
		return d.accepted(d.plan.RouteIntent(route("leave", 0.9, catalog.RouteConfident), "", "These."))
	}},
	{"routed-agent-asks", "routed", "a task's intent: its agent has a tool for the type", "has no tool for", func(d *dishonest) int64 {
		o, _ := d.task.AskIntent("front", "1.0", nil)
		return d.accepted(o, func(a *appended) { a.inputs.Task.Agent, a.inputs.Task.Skills = "password", []string{} })
	}},
	{"unrouted-without-agents", "opened", "plan.open: a request to route has some agent with routing, and names none", "no agent has routing", func(d *dishonest) int64 {
		return d.accepted(d.NewPlan("plan_2").OpenRoutedIntent(routertest.DefaultRouting, "S1"))
	}},
	{"unrouted-with-agent", "unrouted", "plan.open: a request to route has some agent with routing, and names none", "name none", func(d *dishonest) int64 {
		o := d.NewPlan("plan_2").OpenRoutedIntent(routertest.DefaultRouting, "S2")
		a, _ := o.Args.(catalog.PlanOpen)
		a.Agent = "front"
		o.Args = a
		return d.accepted(o)
	}},
	{"session-goes-on-without-capability", "left", "plan.open: the user may run the agent that the session goes on with", "agents:run:password", func(d *dishonest) int64 {
		o := d.NewPlan("plan_2").OpenRoutedIntent(routertest.DefaultRouting, "S1")
		o.Roles = []string{"clerk"}
		return d.accepted(o)
	}},
	{"session-goes-on-too-late", "left", "step: the plan is executing", "the plan is planning", func(d *dishonest) int64 {
		d.Clock.Move(30 * time.Minute)
		return d.enters(routertest.DefaultRouting)
	}},
	{"session-goes-on-though-switched-off", "left", "step: the plan is executing", "the plan is planning", func(d *dishonest) int64 {
		return d.enters(catalog.Routing{Clarify: true, TTLMinutes: 30})
	}},
	{"session-goes-on-though-closed", "left", "step: the plan is executing", "the plan is planning", func(d *dishonest) int64 {
		o := routertest.Intent{By: d.Manager, Type: "session.close", Args: catalog.SessionClose{SessionID: "S1", Status: "COMPLETED"}, Ctx: intents.Context{SessionID: "S1"}}
		d.accepted(o, func(a *appended) {
			a.result = catalog.Session{SessionID: "S1", UserID: "ana", Status: "COMPLETED", TurnHistory: []catalog.Turn{}}
		})
		return d.enters(routertest.DefaultRouting)
	}},
}
