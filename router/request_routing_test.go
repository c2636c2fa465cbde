package router_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
)

// sure is a classifier's confident choice of an agent.
func sure(agent, decision string) catalog.Route {
	return catalog.Route{Agent: agent, Confidence: 0.9, IntentSummary: "Wants " + agent, Entities: map[string]string{"what": agent}, Language: "en", Decision: decision}
}

// answered ends the plan of an agent.
func answered(p *routertest.Plan) {
	p.Helper()
	p.Want(p.Started(1).Reply("These."), intents.OK)
	p.Want(p.Complete(), intents.OK)
}

// TestRouting: the router judges a route again. It gives the request to the agent that the tree
// gives, whose task has its tools but asks nobody; the session then goes to that agent until it has
// ended.
func TestRouting(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	refused(t, w.Do(w.NewPlan("early").OpenRoutedIntent(routertest.DefaultRouting, "S1")), intents.MalformedArgs, "no agent has routing")
	w.PushAgents(1, routertest.Desk)

	p, told := w.OpenRouted("first", "S1", routertest.DefaultRouting)
	if told.Routing == nil || !told.Routing.Clarify || told.Routing.Before != nil || told.Agent != "" {
		t.Errorf("the driver is told %+v", told)
	}
	got := routertest.Result[catalog.AgentGetResult](w, w.Want(w.Do(routertest.Intent{By: w.Manager, Type: "agent.get", Args: catalog.AgentGet{}, Ctx: intents.Context{PlanID: p.ID, SessionID: "S1"}}), intents.OK))
	names := map[string]catalog.RoutingTerms{}
	for _, o := range got.Others {
		names[o.Agent] = *o.Routing
	}
	if want := []string{"front", "leave", "password"}; !slices.Equal(slices.Sorted(maps.Keys(names)), want) || !names["front"].Default || names["password"].Threshold != 0.8 || names["password"].About == "" || names["leave"].Examples[0] != "Book a day off" {
		t.Errorf("offered: %+v", got.Others)
	}

	confident := sure("password", catalog.RouteConfident)
	for name, tt := range map[string]struct {
		route           catalog.Route
		agent, question string
		code            intents.Code
		words           string
	}{
		"another decision":      {sure("password", catalog.RouteDefault), "front", "", intents.MalformedArgs, "makes it confident"},
		"another agent":         {confident, "leave", "", intents.MalformedArgs, "of the agent password"},
		"an agent nobody knows": {sure("nobody", catalog.RouteConfident), "nobody", "", intents.MalformedArgs, "makes it unknown"},
		"a question instead":    {confident, "", "Which?", intents.MalformedArgs, "one step"},
		"agent and question":    {confident, "password", "Which?", intents.MalformedArgs, "steps is answered"},
		"neither":               {confident, "", "", intents.MalformedArgs, "has an answer"},
		"less sure than said":   {catalog.Route{Agent: "password", Confidence: 0.79, Decision: catalog.RouteConfident}, "password", "", intents.MalformedArgs, "makes it clarify"},
		"ambiguous":             {catalog.Route{Agent: "password", Confidence: 1, Ambiguous: true, Decision: catalog.RouteConfident}, "password", "", intents.MalformedArgs, "makes it clarify"},
		"bypass":                {sure("password", catalog.RouteBypass), "password", "", intents.MalformedArgs, "makes it confident"},
	} {
		t.Run(name, func(t *testing.T) { refused(t, p.Routed(tt.route, tt.agent, tt.question), tt.code, tt.words) })
	}
	refused(t, p.Plan(routertest.Steps(1, "feed")), intents.MalformedArgs, "a manager routes it")
	planned := p.RouteIntent(confident, "password", "")
	planned.By = w.Planner
	refused(t, w.Do(planned), intents.KeyRole, "managers those that are routed")
	clerk := p.RouteIntent(confident, "password", "")
	w.Want(w.Admin("admin.put", catalog.AdminPut{Tenant: "default", Role: &catalog.RoleData{Role: "clerk", Capabilities: []string{"plans:*", "agents:run:front"}}}), intents.OK)
	clerk.Roles = []string{"clerk"}
	refused(t, w.Do(clerk), intents.RBACForbidden, "agents:run:password")

	p.Want(p.Routed(confident, "password", ""), intents.OK)
	v := p.View()
	if v.Agent != "password" || v.Status != catalog.PlanExecuting || v.Revision != 0 || v.PlanDigest != p.Digest || len(v.Steps) != 1 || v.Route.IntentSummary != "Wants password" {
		t.Errorf("routed: %+v", v)
	}
	refused(t, p.Routed(sure("leave", catalog.RouteConfident), "leave", ""), intents.MalformedArgs, "nobody plans it")
	w = w.Restart()
	p = p.On(w)
	task := p.Started(1)
	ask, _ := task.AskIntent("front", "1.0", nil)
	refused(t, w.Do(ask), intents.TaskScope, "")
	p.Want(task.Reply("Done."), intents.OK)
	p.Want(p.Do(routertest.Intent{By: w.Manager, Type: "plan.close", Args: catalog.PlanClose{PlanID: p.ID, Epoch: p.Epoch, Status: "complete", Response: "Done."}, Ctx: intents.Context{PlanID: p.ID, SessionID: "S1"}}), intents.OK)
	if v := p.View(); v.Route.Decision != catalog.RouteConfident || v.Route.IntentSummary != "Wants password" || v.Steps[0].Task != "password" {
		t.Errorf("its texts come back: %+v", v)
	}

	// A plan that was not opened by request routing has no route.
	other := w.Begun("other", "feed")
	other.Want(other.Fail(), intents.OK)
	other = w.NewPlan("plain")
	w.Want(other.Open(), intents.OK)
	w.Want(other.Claim(), intents.OK)
	refused(t, other.Routed(confident, "password", ""), intents.MalformedArgs, "not opened for routing")
}

// TestRoutingSession: an active session goes to its agent without being classified, also after a
// restart, until it ends: by its time to live, by session.close, by the switch, by a registry
// without the agent or a user who may not run it any more.
func TestRoutingSession(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	w.PushAgents(1, routertest.Desk)
	n := 0
	next := func(session string, routing catalog.Routing) (*routertest.Plan, catalog.PlanView) {
		n++
		return w.OpenRouted(string(rune('a'+n)), session, routing)
	}
	begin := func(session string) {
		t.Helper()
		p, _ := next(session, routertest.DefaultRouting)
		p.Want(p.Routed(sure("leave", catalog.RouteConfident), "leave", ""), intents.OK)
		task := p.Started(1)
		p.Want(task.Reply("These."), intents.OK)
		p.Want(p.Complete(), intents.OK)
	}
	bypassed := func(name, session string, routing catalog.Routing, want bool) {
		t.Helper()
		p, view := next(session, routing)
		if got := view.Agent == "leave" && view.Route != nil && view.Route.Decision == catalog.RouteBypass; got != want {
			t.Errorf("%s: agent %q, route %+v, want a bypass: %v", name, view.Agent, view.Route, want)
		}
		if want {
			answered(p)
		} else {
			p.Want(p.Fail(), intents.OK)
		}
	}
	begin("S1")
	w = w.Restart()
	bypassed("goes on", "S1", routertest.DefaultRouting, true)
	bypassed("another session", "S2", routertest.DefaultRouting, false)
	off := routertest.DefaultRouting
	off.Bypass = false
	bypassed("switched off", "S1", off, false)
	w.Clock.Move(30*time.Minute - time.Millisecond)
	bypassed("at the last moment", "S1", routertest.DefaultRouting, true)
	w.Clock.Move(30 * time.Minute)
	bypassed("its time is over", "S1", routertest.DefaultRouting, false)
	longer := routertest.DefaultRouting
	longer.TTLMinutes = 60
	bypassed("a longer time", "S1", longer, true)

	begin("S3")
	w.Bus.On("session.close", routertest.Always(routertest.Done(catalog.Session{SessionID: "S3", UserID: "ana", Status: "COMPLETED", TurnHistory: []catalog.Turn{}})))
	w.Want(w.Do(routertest.Intent{By: w.Manager, Type: "session.close", Args: catalog.SessionClose{SessionID: "S3", Status: "COMPLETED"}, Ctx: intents.Context{SessionID: "S3"}}), intents.OK)
	w = w.Restart()
	bypassed("closed", "S3", routertest.DefaultRouting, false)

	begin("S4")
	w.Want(w.Admin("admin.put", catalog.AdminPut{Tenant: "default", Role: &catalog.RoleData{Role: "user", Capabilities: []string{"plans:*", "agents:run:front", "agents:run:password"}}}), intents.OK)
	refused(t, w.Do(w.NewPlan("denied").OpenRoutedIntent(routertest.DefaultRouting, "S4")), intents.RBACForbidden, "agents:run:leave")
	w.Want(w.Admin("admin.put", catalog.AdminPut{Tenant: "default", Role: &catalog.RoleData{Role: "user", Capabilities: []string{"plans:*", "agents:run:*", "sessions:*"}}}), intents.OK)
	bypassed("the user may again", "S4", routertest.DefaultRouting, true)
	w.PushAgents(2, map[string]string{"front": routertest.Desk["front"]})
	bypassed("the agent is gone", "S4", routertest.DefaultRouting, false)
}

// TestRoutingClarify: the user is asked at most once about one request, and never if that is
// switched off; the next request is classified with it.
func TestRoutingClarify(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	w.PushAgents(1, routertest.Desk)
	unsure := catalog.Route{Agent: "password", Confidence: 0.4, Language: "de", Decision: catalog.RouteClarify}
	first, _ := w.OpenRouted("first", "S1", routertest.DefaultRouting)
	first.Want(first.Routed(unsure, "", "Welches Konto?"), intents.OK)
	refused(t, first.Complete(), intents.MalformedArgs, "with the answer")
	first.Want(first.Do(routertest.Intent{By: w.Manager, Type: "plan.close", Args: catalog.PlanClose{PlanID: first.ID, Epoch: 1, Status: "complete", Response: "Welches Konto?"}, Ctx: intents.Context{PlanID: first.ID, SessionID: "S1"}}), intents.OK)
	w = w.Restart()

	second, told := w.OpenRouted("second", "S1", routertest.DefaultRouting)
	if told.Routing == nil || told.Routing.Clarify || told.Routing.Before == nil || *told.Routing.Before != (catalog.PriorRequest{PlanID: first.ID, Agent: "password"}) {
		t.Errorf("the driver is told %+v", told.Routing)
	}
	refused(t, second.Routed(unsure, "", "Welches Konto?"), intents.MalformedArgs, "makes it default")
	unsure.Decision = catalog.RouteDefault
	second.Want(second.Routed(unsure, "front", ""), intents.OK)
	answered(second)
	if _, told := w.OpenRouted("third", "S1", routertest.DefaultRouting); told.Agent != "front" || told.Route.Language != "de" {
		t.Errorf("the session goes on with %+v", told)
	}

	off := routertest.DefaultRouting
	off.Clarify = false
	quiet, told := w.OpenRouted("quiet", "S2", off)
	if told.Routing == nil || told.Routing.Clarify {
		t.Errorf("the driver is told %+v", told.Routing)
	}
	quiet.Want(quiet.Routed(unsure, "front", ""), intents.OK)
}

// TestRoutingBreaker: an agent whose breaker is open gets no request. The default agent gets them,
// but not the session, which continues with its agent once that is back; without a default there is
// none.
func TestRoutingBreaker(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	w.PushAgents(1, routertest.Desk)
	w.Bus.On("skill.call", routertest.Always(fails()))
	breaks := func(server string) {
		t.Helper()
		w.Pin(server+".call", catalog.Pure)
		task := w.Begun("calls-"+server, server+".call").Started(1)
		for n := range 5 {
			task.Call(server+".call", fmt.Sprintf(`{"n":%d}`, n))
		}
	}
	begun, _ := w.OpenRouted("begun", "S1", routertest.DefaultRouting)
	begun.Want(begun.Routed(sure("leave", catalog.RouteConfident), "leave", ""), intents.OK)
	answered(begun)
	breaks("leave")
	for i := range 2 { // after a restart, too
		p, told := w.OpenRouted(fmt.Sprint("goes-on-", i), "S1", routertest.DefaultRouting)
		if told.Agent != "front" || told.Route.Decision != catalog.RouteBreaker || told.Route.Agent != "leave" {
			t.Errorf("the session goes on with %+v", told)
		}
		answered(p)
		fresh, _ := w.OpenRouted(fmt.Sprint("fresh-", i), fmt.Sprint("S2-", i), routertest.DefaultRouting)
		refused(t, fresh.Routed(sure("leave", catalog.RouteConfident), "leave", ""), intents.MalformedArgs, "makes it breaker")
		fresh.Want(fresh.Routed(sure("leave", catalog.RouteBreaker), "front", ""), intents.OK)
		w = w.Restart()
		w.Bus.On("skill.call", routertest.Always(fails()))
	}
	w.Clock.Move(29 * time.Minute) // it may be tried again
	if _, told := w.OpenRouted("back", "S1", routertest.DefaultRouting); told.Agent != "leave" || told.Route.Decision != catalog.RouteBypass {
		t.Errorf("the session goes on with %+v", told)
	}
	breaks("front")
	nobody, _ := w.OpenRouted("nobody", "S3", routertest.DefaultRouting)
	refused(t, nobody.Routed(sure("unknown", catalog.RouteUnknown), "front", ""), intents.DispatchUnavailable, "no agent is there")
	nobody.Want(nobody.Routed(sure("password", catalog.RouteConfident), "password", ""), intents.OK)
}
