package routertest

import (
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

// DefaultRouting has the default settings of request routing.
var DefaultRouting = catalog.Routing{EntryPoint: "ui", Bypass: true, Clarify: true, TTLMinutes: 30}

// Desk is a registry of three agents that requests are routed to.
var Desk = map[string]string{
	"front": "name: front\ndescription: Answers what nobody else does.\nis_default: true\nconfidence_threshold: 0\nclarification_required: false\nexamples: [\"Hello\"]\n",
	"password": "name: password\ndescription: Resets passwords and unlocks accounts.\nis_default: false\nconfidence_threshold: 0.8\nclarification_required: true\n" +
		"clarification_context: Ask which account it is.\nexamples: [\"Reset my password\"]\nsub_agents: [front]\n",
	"leave": "name: leave\ndescription: Books leave and holidays.\nis_default: false\nconfidence_threshold: 0.5\nclarification_required: false\nexamples: [\"Book a day off\"]\n",
}

// OpenRoutedIntent is a routed plan.open, in a session.
func (p *Plan) OpenRoutedIntent(routing catalog.Routing, session string) Intent {
	p.Session = session
	return p.intent(p.Gateway, "plan.open", catalog.PlanOpen{PlanID: p.ID, Task: "Reset it", Routing: &routing})
}

// RouteIntent is a manager's plan with a route: for an agent, or for nobody yet with a
// question to the user.
func (p *Plan) RouteIntent(r catalog.Route, agent, question string) Intent {
	a := catalog.Plan{PlanID: p.ID, Epoch: p.Epoch, Revision: 1, Route: &r, Answer: question, Steps: []catalog.PlanStep{}}
	if agent != "" {
		a.Steps = append(a.Steps, catalog.PlanStep{Step: 1, Task: agent, Skills: []string{}, Agent: agent, ReturnSpec: catalog.ReturnSpec{Shape: "string", Reason: "the agent's reply"}})
	}
	return p.intent(p.Manager, "plan", a)
}

// OpenRouted opens and claims a routed plan, in a session, and returns the driver's view of it.
func (w *World) OpenRouted(id, session string, routing catalog.Routing) (*Plan, catalog.PlanView) {
	w.Helper()
	p := w.NewPlan(id)
	opened := p.Want(p.Do(p.OpenRoutedIntent(routing, session)), intents.OK)
	a := p.Want(p.Claim(), intents.OK)
	view := Result[catalog.PlanView](w, a)
	if view.Agent != "" {
		p.Digest = opened.IntentID
	}
	return p, view
}

// Routed signs the route of a plan.
func (p *Plan) Routed(r catalog.Route, agent, question string) *intents.Answer {
	p.Helper()
	a := p.Do(p.RouteIntent(r, agent, question))
	if a.Code == intents.OK {
		p.Digest = a.IntentID
	}
	return a
}
