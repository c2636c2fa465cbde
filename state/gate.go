package state

import (
	"fmt"
	"slices"
	"time"

	"aob.dev/writ/agentic/agents"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/storage"
)

// A plan may be opened at the gate: then one agent of the registry is chosen for its
// request. An active session goes to its agent at once. Else the classifier is asked, and
// the manager seals a plan with the route, which is judged here by the same function that
// made it. From then on it is a plan of that agent, which asks no other in it.
//
// The session of a user is what the gate made of it last: the last plan that it gave to an
// agent, or for which it asked the user what is meant. That plan is kept for PlanKept, which
// no session outlives.

// gates are the agents of a tenant that requests are routed to.
func (s *State) gates(tenant string) (map[string]agents.Gate, error) {
	set, err := s.agentsOf(tenant, "", nil)
	if err != nil {
		return nil, err
	}
	out := make(map[string]agents.Gate)
	for _, a := range set.Agents {
		if a.Routing != nil && a.Runnable() {
			out[a.Name] = *a.Routing
		}
	}
	return out, nil
}

// broken says of the agents of a tenant whose breaker is open.
func (s *State) broken(tenant string, now time.Time) func(agent string) bool {
	return func(agent string) bool { return s.breakerOpen(tenant, agent, now) }
}

// relyOnGate makes a decision rely on all by which the gate chooses.
func (v *View) relyOnGate(o Order) {
	v.rely(SubjectRegistry)
	v.rely(SubjectTenant(o.Tenant))
	gates, _ := v.s.gates(o.Tenant) // what is wrong with them is said elsewhere
	for name := range gates {
		v.rely(SubjectBreaker(o.Tenant + "/" + name))
	}
}

// enter is what plan.open does at the gate: it gives the agent of the active session, or
// none where the request is to be classified.
func (s *State) enter(p *plan, o Order, a catalog.PlanOpen) (agent string, err error) {
	if a.Agent != "" || a.Schedule != nil {
		return "", illegal("/intent/args/gate", "the gate chooses the agent of a user's request: name none, and no schedule")
	}
	gates, err := s.gates(o.Tenant)
	if err != nil {
		return "", err
	}
	if len(gates) == 0 {
		return "", illegal("/intent/args/gate", "no agent has routing: give is_default to one, and examples and confidence_threshold to others")
	}
	p.Gate = a.Gate
	last := s.routed[p.inSession()]
	if last == nil || !last.active(time.Duration(a.Gate.TTLMinutes)*time.Minute, o.Now) {
		return "", nil
	}
	of := last.View.Route
	if of.Decision == catalog.RouteClarify {
		p.Before = &catalog.Clarified{PlanID: last.View.PlanID, Agent: of.Agent}
		return "", nil
	}
	agent = last.View.Agent
	if _, may := gates[agent]; !a.Gate.Bypass || !may {
		return "", nil
	}
	p.View.Route = &catalog.Route{Agent: agent, Language: of.Language, Decision: catalog.RouteBypass}
	if broken := s.broken(o.Tenant, o.Now); broken(agent) {
		agent, _ = agents.Decide(gates, broken, catalog.Route{}, false)
		p.View.Route.Decision = catalog.RouteBreaker
	}
	if agent == "" {
		return "", errNobody()
	}
	return agent, nil
}

func errNobody() error {
	return intents.Refuse(intents.DispatchUnavailable, "/intent/args", "no agent is there: the breaker of the default agent is open")
}

// mayRun refuses what the gate does at once for a user who may not run its agent. Of another
// plan the order that routes it names the agent.
func (v *View) mayRun(o Order, p *plan) error {
	if p.View.Route == nil || o.Erased {
		return nil
	}
	roles, _ := v.s.dir.RolesNow(o.Tenant, o.User, o.Grant.APIKey(), o.Grant.Roles)
	caps, _ := v.s.dir.Capabilities(o.Tenant, roles)
	if need := catalog.RunAgent + ":" + p.View.Agent; !Covered(v.s.rules, caps, need) {
		return intents.Refuse(intents.RBACForbidden, "/context/session_id", "the session goes on with an agent that the user may not run: it needs "+need+"; begin another session")
	}
	return nil
}

// active says whether the session goes on where this plan has left it.
func (p *plan) active(ttl time.Duration, now time.Time) bool {
	closed := p.View.CompletedAt
	return !p.Over && (closed == nil || now.Before(closed.Add(ttl)))
}

// route is what a manager's plan does to a plan that was opened at the gate.
func (s *State) route(p *plan, o Order, a catalog.Plan) error {
	if a.Route == nil {
		return illegal("/intent/args/route", "the plan was opened at the gate: a manager routes it")
	}
	past, err := s.atOpening(p)
	if err != nil {
		return err
	}
	gates, err := past.gates(o.Tenant)
	if err != nil {
		return err
	}
	agent, decision := agents.Decide(gates, s.broken(o.Tenant, o.Now), *a.Route, p.Gate.Clarify && p.Before == nil)
	switch {
	case decision == "":
		return errNobody()
	case a.Route.Decision != decision:
		return illegal("/intent/args/route/decision", "what the classifier says makes it "+decision)
	case agent == "" && len(a.Steps) > 0:
		return illegal("/intent/args/steps", "a plan that asks the user has an answer, and no steps")
	case agent != "" && (len(a.Steps) != 1 || a.Steps[0].Step != 1 || a.Steps[0].Agent != agent || len(a.Steps[0].Skills) > 0):
		return illegal("/intent/args/steps", "the plan has one step, 1, of the agent "+agent)
	}
	p.View.Route = a.Route
	if agent == "" {
		p.revise(a, o.Decision.IntentID)
		return nil
	}
	r, skills, err := past.runsOf(o.Tenant, agent)
	if err != nil {
		return err
	}
	p.runBy(agent, r, skills, o.Decision.IntentID)
	p.View.Status = catalog.PlanExecuting
	p.View.Usage = catalog.AddUsage(p.View.Usage, a.Usage...)
	return nil
}

// judgeRoute says whether a plan that was opened at the gate is routed as it must be.
func (v *View) judgeRoute(o Order, p *plan, a catalog.Plan) (Effect, error) {
	switch {
	case p.Gate == nil:
		return Effect{}, illegal("/intent/args/route", "the plan was not opened at the gate: its planner writes it")
	case p.View.Status != catalog.PlanPlanning || a.Revision != 1 || len(a.Drop) > 0:
		return Effect{}, illegal("/intent/args/plan_id", "a plan is routed once, while it is planning, as revision 1")
	}
	if err := legalAnswer(o, a); err != nil {
		return Effect{}, err
	}
	v.relyOnGate(o)
	after := p.clone()
	if err := v.s.route(after, o, a); err != nil {
		return Effect{}, err
	}
	return Effect{after.answer(), append(p.touches(true), p.turnSubjects()...)}, nil
}

// applyRoute is the effect of a routed plan.
func (s *State) applyRoute(p *plan, o Order, a catalog.Plan) error {
	if err := s.route(p, o, a); err != nil {
		return err
	}
	s.spend(p, catalog.Tokens(a.Usage), o.At)
	p.Unsaid = o.Erased
	p.Texts = append(p.Texts, o.Recorded)
	s.takeSession(p, o.Position)
	return nil
}

// takeSession makes a plan that was routed the one that its session goes on from. What
// only a breaker has sent to the default leaves the session where it was.
func (s *State) takeSession(p *plan, position int64) {
	if p.View.Route != nil && p.View.Route.Decision != catalog.RouteBreaker {
		p.Routed = position
		s.putRouted(p)
	}
}

func (s *State) putRouted(p *plan) {
	name := p.inSession()
	if before := s.routed[name]; name != "" && p.Routed > 0 && (before == nil || before.Routed < p.Routed) {
		s.routed[name] = p
	}
}

// closesSession are what the end of an order changes that closes the session of its context.
func (o *Order) closesSession() []storage.Subject {
	if o.Type != typeSessionClose || o.Context.SessionID == "" {
		return nil
	}
	return []storage.Subject{subjectSession(o.Tenant, o.User, o.Context.SessionID)}
}

// runBy makes a plan that of an agent, with the only step of it. The agent of a routed plan
// asks no other.
func (p *plan) runBy(agent string, r *runs, skills []string, digest string) {
	if p.Gate != nil {
		r.alone()
	}
	p.Runs, p.View.Agent, p.View.PlanDigest = r, agent, digest
	p.View.Steps = []catalog.StepView{{Status: catalog.StepPending, PlanStep: catalog.PlanStep{
		Step: 1, Task: agent, Skills: skills, ReturnSpec: catalog.ReturnSpec{Shape: "string", Reason: "the agent's reply"},
	}}}
}

// alone takes from an agent what it needs to ask others.
func (r *runs) alone() {
	r.asking = asking{}
	r.Types = slices.DeleteFunc(slices.Clone(r.Types), func(typ string) bool { return typ == intents.TypeAgentAsk })
}

// atGate are the agents that the request of a plan may be given to, as far as its user may
// run them.
func (v *View) atGate(o Order, p *plan) (out []catalog.OtherAgent, err error) {
	v.rely(SubjectRegistry)
	v.rely(SubjectTenant(o.Tenant))
	past, err := v.s.atOpening(p)
	if err != nil {
		return nil, err
	}
	gates, err := past.gates(o.Tenant)
	if err != nil {
		return nil, err
	}
	x := asking{Asks: make(map[string]*runs), AskFor: int(MaxTaskLife.Seconds())}
	caps, _ := v.s.dir.Capabilities(o.Tenant, o.Grant.Roles)
	for name := range gates {
		if !Covered(v.s.rules, caps, catalog.RunAgent+":"+name) {
			continue
		}
		if x.Asks[name], _, err = past.runsOf(o.Tenant, name); err != nil {
			return nil, fmt.Errorf("the agent %s: %w", name, err)
		}
	}
	out = x.others()
	for i := range out {
		a, err := agents.Parse([]byte(x.Asks[out[i].Agent].Text))
		if err != nil {
			return nil, err
		}
		g := gates[a.Name] // of several defaults the nearest is one
		out[i].Routing = &catalog.Offered{
			Default: g.Default, Threshold: g.Threshold, Clarify: g.Clarify, About: a.ClarificationContext, Examples: a.Examples,
			Open: v.s.breakerOpen(o.Tenant, a.Name, o.Now),
		}
	}
	return out, nil
}
