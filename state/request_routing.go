package state

import (
	"fmt"
	"slices"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/state/agents"
	"aob.dev/writ/storage"
)

// A plan may be opened through request routing: then one agent of the registry is chosen for its
// request. An active session goes to its agent at once. Otherwise the classifier is asked, and
// the manager signs a plan with the route, which is judged here by the same function that made
// it. From then on it is a plan of that agent, which asks no other in it.
//
// The session of a user is determined by the last routed plan: the last one that was given to an
// agent, or for which the user was asked to clarify. That plan is retained for PlanKept, which
// no session outlives.

// routingRules are the agents of a tenant that requests are routed to.
func (s *State) routingRules(tenant string) (map[string]agents.RoutingRule, error) {
	set, err := s.agentsOf(tenant, "", nil)
	if err != nil {
		return nil, err
	}
	out := make(map[string]agents.RoutingRule)
	for _, a := range set.Agents {
		if a.Routing != nil && a.Runnable() {
			out[a.Name] = *a.Routing
		}
	}
	return out, nil
}

// open reports whether an agent's breaker was open at the decision.
func (o *Intent) open(agent string) bool { return slices.Contains(o.OpenAgents, agent) }

// sees returns o.open for a decision, whose record has the open agents that it was asked about.
func (v *View) sees(o Intent) func(agent string) bool {
	return func(agent string) bool {
		open := o.open(agent)
		if at, seen := slices.BinarySearch(v.OpenAgents, agent); open && !seen {
			v.OpenAgents = slices.Insert(v.OpenAgents, at, agent)
		}
		return open
	}
}

// addRoutingReads adds everything that routing depends on to the decision's reads.
func (v *View) addRoutingReads(o Intent) {
	v.addRead(SubjectRegistry)
	v.addRead(SubjectTenant(o.Tenant))
}

// enter routes a plan.open: it returns the agent of the active session, or none if the request
// is to be classified. open reports whether an agent's breaker is open.
func (s *State) enter(p *plan, o Intent, a catalog.PlanOpen, open func(agent string) bool) (agent string, err error) {
	if a.Agent != "" || a.Schedule != nil {
		return "", illegal("/intent/args/routing", "routing chooses the agent of a user's request: name none, and no schedule")
	}
	rules, err := s.routingRules(o.Tenant)
	if err != nil {
		return "", err
	}
	if len(rules) == 0 {
		return "", illegal("/intent/args/routing", "no agent has routing: give is_default to one, and examples and confidence_threshold to others")
	}
	p.Routing = a.Routing
	last := s.routed[p.inSession()]
	if last == nil || !last.active(time.Duration(a.Routing.TTLMinutes)*time.Minute, o.Now) {
		return "", nil
	}
	of := last.View.Route
	if of.Decision == catalog.RouteClarify {
		p.Before = &catalog.PriorRequest{PlanID: last.View.PlanID, Agent: of.Agent}
		return "", nil
	}
	agent = last.View.Agent
	if _, may := rules[agent]; !a.Routing.Bypass || !may {
		return "", nil
	}
	p.View.Route = &catalog.Route{Agent: agent, Language: of.Language, Decision: catalog.RouteBypass}
	if open(agent) {
		agent, _ = agents.Decide(rules, open, catalog.Route{}, false)
		p.View.Route.Decision = catalog.RouteBreaker
	}
	if agent == "" {
		return "", errNobody()
	}
	return agent, nil
}

// HasBreaker reports whether an intent may be refused because a skill server fails: a call of an
// approved skill, and what routes a request.
func (o *Intent) HasBreaker() bool {
	return AsksServer(o.Type) && o.Skill != "" || o.Type == TypePlanOpen || o.Type == TypePlan
}

func errNobody() error {
	return intents.Refuse(intents.DispatchUnavailable, "/intent/args", "no agent is there: the breaker of the default agent is open")
}

// mayRun refuses immediate routing for a user who may not run the agent. For another plan, the
// intent that routes it names the agent.
func (v *View) mayRun(o Intent, p *plan) error {
	if p.View.Route == nil || o.Erased {
		return nil
	}
	roles, _ := v.s.dir.RolesNow(o.Tenant, o.User, o.Grant.Caller(), o.Grant.Roles)
	caps, _ := v.s.dir.Capabilities(o.Tenant, roles)
	if need := catalog.RunAgent + ":" + p.View.Agent; !Covers(caps, need) {
		return intents.Refuse(intents.RBACForbidden, "/context/session_id", "the session goes on with an agent that the user may not run: it needs "+need+"; begin another session")
	}
	return nil
}

// active reports whether the session continues from this plan.
func (p *plan) active(ttl time.Duration, now time.Time) bool {
	closed := p.View.CompletedAt
	return !p.SessionEnded && (closed == nil || now.Before(closed.Add(ttl)))
}

// route applies a manager's plan to a plan that was opened through routing.
func (s *State) route(p *plan, o Intent, a catalog.Plan, open func(agent string) bool) error {
	if a.Route == nil {
		return illegal("/intent/args/route", "the plan was opened for routing: a manager routes it")
	}
	past, err := s.atOpening(p)
	if err != nil {
		return err
	}
	rules, err := past.routingRules(o.Tenant)
	if err != nil {
		return err
	}
	agent, decision := agents.Decide(rules, open, *a.Route, p.Routing.Clarify && p.Before == nil)
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

// judgeRoute checks that a plan that was opened through routing is routed as it must be.
func (v *View) judgeRoute(o Intent, p *plan, a catalog.Plan) (Effect, error) {
	switch {
	case p.Routing == nil:
		return Effect{}, illegal("/intent/args/route", "the plan was not opened for routing: its planner writes it")
	case p.View.Status != catalog.PlanPlanning || a.Revision != 1 || len(a.Drop) > 0:
		return Effect{}, illegal("/intent/args/plan_id", "a plan is routed once, while it is planning, as revision 1")
	}
	if err := legalAnswer(o, a); err != nil {
		return Effect{}, err
	}
	v.addRoutingReads(o)
	after := p.clone()
	if err := v.s.route(after, o, a, v.sees(o)); err != nil {
		return Effect{}, err
	}
	return Effect{after.answer(), append(p.writes(true), p.turnSubjects()...)}, nil
}

// applyRoute applies a routed plan.
func (s *State) applyRoute(p *plan, o Intent, a catalog.Plan) error {
	if err := s.route(p, o, a, o.open); err != nil {
		return err
	}
	s.spend(p, catalog.Tokens(a.Usage), o.At)
	p.AnswerErased = o.Erased
	p.Texts = append(p.Texts, o.Recorded)
	s.takeSession(p, o.Position)
	return nil
}

// takeSession makes a routed plan the one that its session continues from. A request that went
// to the default agent only because of a breaker leaves the session unchanged.
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

// closesSession lists what the end of an intent writes that closes the session of its context.
func (o *Intent) closesSession() []storage.Subject {
	if o.Type != typeSessionClose || o.Context.SessionID == "" {
		return nil
	}
	return []storage.Subject{subjectSession(o.Tenant, o.User, o.Context.SessionID)}
}

// runBy makes a plan that of an agent, with the agent's single step. The agent of a routed plan
// asks no other.
func (p *plan) runBy(agent string, r *runs, skills []string, digest string) {
	if p.Routing != nil {
		r.dropAsks()
	}
	p.Runs, p.View.Agent, p.View.PlanDigest = r, agent, digest
	p.View.Steps = []catalog.StepView{{Status: catalog.StepPending, PlanStep: catalog.PlanStep{
		Step: 1, Task: agent, Skills: skills, ReturnSpec: catalog.ReturnSpec{Shape: "string", Reason: "the agent's reply"},
	}}}
}

// dropAsks removes from an agent what it needs to ask others.
func (r *runs) dropAsks() {
	r.asking = asking{}
	r.Types = slices.DeleteFunc(slices.Clone(r.Types), func(typ string) bool { return typ == intents.TypeAgentAsk })
}

// routableAgents are the agents that the request of a plan may be routed to, limited to those
// its user may run.
func (v *View) routableAgents(o Intent, p *plan) (out []catalog.OtherAgent, err error) {
	v.addRead(SubjectRegistry)
	v.addRead(SubjectTenant(o.Tenant))
	past, err := v.s.atOpening(p)
	if err != nil {
		return nil, err
	}
	rules, err := past.routingRules(o.Tenant)
	if err != nil {
		return nil, err
	}
	x := asking{Asks: make(map[string]*runs), AskFor: int(MaxTaskLife.Seconds())}
	caps, _ := v.s.dir.Capabilities(o.Tenant, o.Grant.Roles)
	for name := range rules {
		if !Covers(caps, catalog.RunAgent+":"+name) {
			continue
		}
		if x.Asks[name], _, err = past.runsOf(o.Tenant, name); err != nil {
			return nil, fmt.Errorf("the agent %s: %w", name, err)
		}
	}
	out, open := x.others(), v.sees(o)
	for i := range out {
		a, err := agents.Parse([]byte(x.Asks[out[i].Agent].Text))
		if err != nil {
			return nil, err
		}
		g := rules[a.Name] // of several defaults the nearest counts
		out[i].Routing = &catalog.RoutingTerms{
			Default: g.Default, Threshold: g.Threshold, Clarify: g.Clarify, About: a.ClarificationContext, Examples: a.Examples,
			Open: open(a.Name),
		}
	}
	return out, nil
}
