package routertest

import (
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

// AtGate are the switches of the gate as they are by default.
var AtGate = catalog.Gate{EntryPoint: "ui", Bypass: true, Clarify: true, TTLMinutes: 30}

// Desk is a registry of three agents that requests are routed to.
var Desk = map[string]string{
	"front": "name: front\ndescription: Answers what nobody else does.\nis_default: true\nconfidence_threshold: 0\nclarification_required: false\nexamples: [\"Hello\"]\n",
	"password": "name: password\ndescription: Resets passwords and unlocks accounts.\nis_default: false\nconfidence_threshold: 0.8\nclarification_required: true\n" +
		"clarification_context: Ask which account it is.\nexamples: [\"Reset my password\"]\nsub_agents: [front]\n",
	"leave": "name: leave\ndescription: Books leave and holidays.\nis_default: false\nconfidence_threshold: 0.5\nclarification_required: false\nexamples: [\"Book a day off\"]\n",
}

// GateOrder is plan.open at the gate, in a session.
func (p *Plan) GateOrder(gate catalog.Gate, session string) Order {
	p.Session = session
	return p.order(p.Gateway, "plan.open", catalog.PlanOpen{PlanID: p.ID, Task: "Reset it", Gate: &gate})
}

// RouteOrder is a manager's plan with a route: for an agent, or for nobody yet with a
// question to the user.
func (p *Plan) RouteOrder(r catalog.Route, agent, question string) Order {
	a := catalog.Plan{PlanID: p.ID, Epoch: p.Epoch, Revision: 1, Route: &r, Answer: question, Steps: []catalog.PlanStep{}}
	if agent != "" {
		a.Steps = append(a.Steps, catalog.PlanStep{Step: 1, Task: agent, Skills: []string{}, Agent: agent, ReturnSpec: catalog.ReturnSpec{Shape: "string", Reason: "the agent's reply"}})
	}
	return p.order(p.Manager, "plan", a)
}

// AtGate opens and claims a plan at the gate, in a session. Its view says what the driver
// is told.
func (w *World) AtGate(id, session string, gate catalog.Gate) (*Plan, catalog.PlanView) {
	w.Helper()
	p := w.NewPlan(id)
	opened := p.Want(p.Do(p.GateOrder(gate, session)), intents.OK)
	a := p.Want(p.Claim(), intents.OK)
	view := Result[catalog.PlanView](w, a)
	if view.Agent != "" {
		p.Digest = opened.IntentID
	}
	return p, view
}

// Routed seals the route of a plan.
func (p *Plan) Routed(r catalog.Route, agent, question string) *intents.Answer {
	p.Helper()
	a := p.Do(p.RouteOrder(r, agent, question))
	if a.Code == intents.OK {
		p.Digest = a.IntentID
	}
	return a
}
