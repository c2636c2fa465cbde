package state

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"aob.dev/writ/agentic/agents"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

// revision of the agents of a tenant, or of system, which are every tenant's.
type revision struct {
	Revision int64         `json:"revision"`
	Digest   string        `json:"digest"`
	Bundle   string        `json:"bundle"` // empty: its files are blobs of tenant system
	Scopes   agents.Scopes `json:"scopes"`
	Before   *revision     `json:"before,omitempty"` // the one before, which has none
}

// registryPush puts a revision of a tenant's agents in force. Every set of agents that
// somebody has with it keeps the rules of the registry. Plans that are open go on with
// the agent that they began with. Scopes are what the router, or an auditor, has computed
// from the content.
var registryPush = operators(TypeRegistryPush,
	func(v *View, o Order, a catalog.RegistryPush) (Effect, error) {
		tenant := Named(o.Tenant, a.Tenant)
		if _, ok := v.s.dir.tenants[tenant]; !ok {
			return Effect{}, illegal("/intent/args/tenant", "no such tenant")
		}
		if was := v.s.agents[tenant]; was != nil && a.Revision <= was.Revision {
			return Effect{}, illegal("/intent/args/revision", fmt.Sprintf("revision %d is in force: only a higher one replaces it", was.Revision))
		}
		next, err := v.s.nextAgents(tenant, o, a)
		if err != nil {
			return Effect{}, err
		}
		if v.s.rules >= intents.RulesAsks && slices.ContainsFunc(next.Scopes.Agents, func(a agents.Scope) bool { return a.Name == agents.Client }) {
			return Effect{}, illegal("/intent/args", "the name "+agents.Client+" stands for MCP clients: choose another")
		}
		concerned := []string{tenant}
		if tenant == systemTenant {
			concerned = append(concerned, slices.Sorted(maps.Keys(v.s.agents))...)
		}
		for _, of := range concerned {
			var faults agents.Faults
			if _, err := v.s.agentsOf(of, tenant, next); errors.As(err, &faults) {
				return Effect{}, illegal("/intent/args", "tenant "+of+": "+faults[0].Error())
			} else if err != nil {
				return Effect{}, err
			}
		}
		v.rely(SubjectTenant(tenant))
		if v.s.rules >= intents.RulesWorkflows {
			if err := v.s.approvable(tenant, next.Scopes); err != nil {
				return Effect{}, err
			}
			for _, g := range next.Scopes.Workflows {
				for _, n := range g.Nodes {
					if faults := v.s.inputFaults(tenant, n); len(faults) > 0 {
						return Effect{}, illegal("/intent/args", "the node "+n.ID+" of the workflow "+g.WorkflowID+" gives the skill "+n.Fn+" what it does not take: "+faults[0].Pointer+": "+faults[0].Reason)
					}
				}
			}
		}
		return v.relyOn(accepted(SubjectRegistry))
	},
	func(s *State, o Order, a catalog.RegistryPush) error {
		tenant := Named(o.Tenant, a.Tenant)
		next, err := s.nextAgents(tenant, o, a)
		if err == nil {
			s.agents[tenant] = next
		}
		return err
	})

// nextAgents is what an order puts in force: the revision before, its own content, or what
// is kept under its digest.
func (s *State) nextAgents(tenant string, o Order, a catalog.RegistryPush) (*revision, error) {
	next := &revision{Revision: a.Revision, Digest: a.Digest, Bundle: a.Bundle, Scopes: o.Scopes}
	was := s.agents[tenant]
	if a.Bundle == "" {
		switch {
		case s.comesBack(tenant, a.Digest):
			next.Bundle, next.Scopes = was.Before.Bundle, was.Before.Scopes
		case s.rules < intents.RulesAsks || o.Scopes.Agents == nil:
			return nil, illegal("/intent/args/digest", "not the digest of the revision before, which alone comes back without its bundle, nor of content that is kept")
		}
	}
	if was != nil {
		before := *was
		before.Before = nil
		next.Before = &before
	}
	return next, nil
}

// comesBack says that a revision of a tenant is the one before the one in force.
func (s *State) comesBack(tenant, digest string) bool {
	was := s.agents[tenant]
	return was != nil && was.Before != nil && was.Before.Digest == digest
}

// ComesBack says so, of the tenant that a registry.push names.
func (v *View) ComesBack(tenant, digest string) bool {
	v.s.mu.RLock()
	defer v.s.mu.RUnlock()
	return v.s.comesBack(tenant, digest)
}

// agentsOf are the agents that a tenant has: the built-in ones, over them those of
// system, over them its own; with next, if there is one, as those of the tenant named.
func (s *State) agentsOf(tenant, named string, next *revision) (agents.Scopes, error) {
	var layers []agents.Scopes
	for _, of := range slices.Compact([]string{systemTenant, tenant}) {
		r := s.agents[of]
		if next != nil && named == of {
			r = next
		}
		if r != nil {
			layers = append(layers, r.Scopes)
		}
	}
	return agents.Effective(agents.BuiltinScopes(), layers...)
}

// runs is the agent of a plan, as it was when the plan was opened.
type runs struct {
	Text    string   `json:"text"`           // its file; empty: it is built in, or
	File    string   `json:"file,omitempty"` // the digest of its file, a blob of tenant system
	Types   []string `json:"types"`          // of orders that its task may seal
	Seconds int      `json:"seconds"`        // that a task may take
	// Requests and tokens that a task may use; a step asks no more often than that.
	Requests int `json:"requests,omitempty"`
	Tokens   int `json:"tokens,omitempty"`
	// Holds are the calls that wait for people.
	Holds []agents.Hold `json:"holds,omitempty"`
	// Remote is the pin of a remote agent; nil: this system runs it.
	Remote *intents.Pin `json:"remote,omitempty"`
	asking
	// APIKey is that of the client whose plan it is.
	APIKey string `json:"api_key,omitempty"`
}

// AgentsOf are the names of the agents of a tenant that can be run.
func (s *State) AgentsOf(tenant string) []string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	set, err := s.agentsOf(tenant, "", nil)
	if err != nil {
		return nil // it was sound when it was put in force
	}
	return s.runnable(set)
}

func (s *State) runnable(set agents.Scopes) (names []string) {
	for _, a := range set.Agents {
		if s.runs(a) {
			names = append(names, a.Name)
		}
	}
	return names
}

// runsOf is a tenant's agent as a plan runs it, and the skills that it may call. Of the
// skills of whole servers those count that are approved now.
func (s *State) runsOf(tenant, name string) (r *runs, skills []string, err error) {
	refuse := func(reason string) (*runs, []string, error) {
		return nil, nil, illegal("/intent/args/agent", reason)
	}
	set, err := s.agentsOf(tenant, "", nil)
	if err != nil {
		return nil, nil, err
	}
	i := slices.IndexFunc(set.Agents, func(a agents.Scope) bool { return a.Name == name && s.runs(a) })
	if i < 0 {
		return refuse(catalog.Like("the tenant has no such agent that can be run", name, s.runnable(set)))
	}
	if r, skills, err = s.scoped(tenant, set.Agents[i]); err == nil {
		r.asking, err = s.askedBy(tenant, set.Agents[i], set)
	}
	return r, skills, err
}

// scoped is a tenant's agent without those that it may ask.
func (s *State) scoped(tenant string, a agents.Scope) (r *runs, skills []string, err error) {
	r = &runs{Types: a.Types, Seconds: a.Limits.Seconds, Holds: a.Holds, Requests: a.Limits.Requests, Tokens: a.Limits.Tokens}
	if s.rules >= intents.RulesAsks && slices.Contains(a.Types, "skill.call") { // which of many it needs, a search may say
		r.Types = append(slices.Clone(a.Types), "skill.find")
	}
	for _, of := range []string{systemTenant, tenant} {
		if layer := s.agents[of]; layer != nil && slices.ContainsFunc(layer.Scopes.Agents, func(x agents.Scope) bool { return x.Name == a.Name && x.Digest == a.Digest }) {
			if r.Text, r.File = "", a.Digest; layer.Bundle == "" {
				continue
			}
			if r.Text, err = agents.TextOf(layer.Bundle, a.Digest); err != nil {
				return nil, nil, err
			}
			r.File = ""
		}
	}
	if a.Remote {
		return s.remote(r, a)
	}
	skills = append([]string{}, a.Skills...)
	if t := s.dir.tenants[tenant]; t != nil {
		for skill := range t.Pins {
			if a.OfServer(skill) {
				skills = append(skills, skill)
			}
		}
	}
	slices.Sort(skills)
	return r, slices.Compact(skills), nil
}

// agentGet delivers the agent of a plan, or of a step of it, to a task its own, in the
// revision that the plan began with. A planner is told which agents the steps of its
// plan may name.
var agentGet = move("agent.get",
	func(v *View, o Order, _ catalog.AgentGet) (Effect, error) {
		v.rely(SubjectPlanState(o.Tenant, o.Context.PlanID))
		p, ok := v.s.plans[o.Tenant+"/"+o.Context.PlanID]
		if !ok || final(p.View.Status) {
			return Effect{}, illegal("/context/plan_id", "no open plan")
		}
		if p.Runs == nil && v.s.rules < intents.RulesAsks {
			return Effect{}, illegal("/context/plan_id", "no open plan of an agent")
		}
		if p.Runs == nil && o.Context.Step == 0 {
			offers := v.offers
			if p.Gate != nil {
				offers = v.atGate
			}
			others, err := offers(o, p)
			return Effect{Result: catalog.AgentGetResult{Others: others}}, err
		}
		if p.Runs == nil { // a revision may give its steps to others
			v.relyOnPlan(p)
		}
		name, runs := p.agentAt(o.Context.Step)
		if t := v.s.tasks[o.Tenant+"/"+o.Context.TaskID]; t != nil && t.plan == p && t.Ask != "" {
			name, runs = t.Agent, p.Runs.Asks[t.Agent]
		}
		if runs == nil || p.ofClient() {
			return Effect{}, illegal("/context/step", "no agent runs the step")
		}
		result := catalog.AgentGetResult{Agent: name, Text: runs.Text, File: runs.File, TimeLimitSec: runs.Seconds}
		if v.s.rules >= intents.RulesAsks {
			result.Others = runs.others()
		}
		return Effect{Result: result}, nil
	},
	func(*State, Order, catalog.AgentGet) error { return nil })

// inTime refuses a task of an agent that could go on for longer than the agent may.
func (p *plan) inTime(a catalog.Step, now time.Time) error {
	name, r := p.agentAt(a.Step)
	if r == nil {
		return nil
	}
	deadline, err := time.Parse(time.RFC3339Nano, a.Deadline)
	if limit := time.Duration(r.Seconds) * time.Second; err != nil || deadline.After(now.Add(limit+intents.Leeway)) {
		return illegal("/intent/args/deadline", fmt.Sprintf("the agent %s may take %d s", name, r.Seconds))
	}
	return nil
}

// Registry is what is in force of a tenant's agents.
type Registry struct {
	Revision int64    `json:"revision"`
	Digest   string   `json:"digest"`
	Before   string   `json:"before,omitempty"` // digest of the revision before
	Agents   []string `json:"agents"`

	Workflows []string `json:"workflows,omitempty"`
}

// registryOf a tenant; nil: nothing was pushed.
func (s *State) registryOf(tenant string) *Registry {
	r := s.agents[tenant]
	if r == nil {
		return nil
	}
	out := &Registry{Revision: r.Revision, Digest: r.Digest, Agents: []string{}}
	if r.Before != nil {
		out.Before = r.Before.Digest
	}
	for _, a := range r.Scopes.Agents {
		out.Agents = append(out.Agents, a.Name)
	}
	for _, g := range r.Scopes.Workflows {
		out.Workflows = append(out.Workflows, g.WorkflowID)
	}
	return out
}

// ScopesOf are the scopes of what a tenant has pushed, without those of system.
func (s *State) ScopesOf(tenant string) (of agents.Scopes) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if r := s.agents[tenant]; r != nil {
		of = r.Scopes
	}
	return of
}

// InForce is the digest of a tenant's agents in force, and their bundle; no digest: there are none.
func (s *State) InForce(tenant string) (digest, bundle string) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if r := s.agents[tenant]; r != nil {
		digest, bundle = r.Digest, r.Bundle
	}
	return digest, bundle
}

// BeforeInForce is the revision before the one in force, as InForce is that; no digest: there is none.
func (s *State) BeforeInForce(tenant string) (digest, bundle string) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if r := s.agents[tenant]; r != nil && r.Before != nil {
		digest, bundle = r.Before.Digest, r.Before.Bundle
	}
	return digest, bundle
}

// Registered are the rows of a tenant's agents and workflows in force, and of those that only
// the revision before had. read reads blobs of tenant system.
func (s *State) Registered(tenant string, read func(digest string) ([]byte, error)) (rows []catalog.SchemaRow, err error) {
	r := s.agents[tenant]
	if r == nil {
		return nil, nil
	}
	content, err := ContentOf(r.Bundle, r.Digest, read)
	if err != nil {
		return nil, err
	}
	for _, d := range content.Agents {
		row, err := d.Row()
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	for _, d := range content.Workflows {
		row, err := agents.FlowRow(d)
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	if r.Before == nil {
		return rows, nil
	}
	for _, a := range r.Before.Scopes.Agents {
		if _, still := content.Agent(a.Name); !still {
			rows = append(rows, catalog.SchemaRow{Name: a.Name, Kind: catalog.KindGone, Schema: json.RawMessage(`{}`), ID: a.Name})
		}
	}
	for _, g := range r.Before.Scopes.Workflows {
		if _, still := content.Workflow(g.WorkflowID); !still {
			rows = append(rows, catalog.SchemaRow{Name: g.WorkflowID, Kind: catalog.KindGone, Schema: json.RawMessage(`{}`), ID: agents.FlowID(g.WorkflowID)})
		}
	}
	return rows, nil
}

// PayloadTypes are those that the agents of a tenant declare.
func (v *View) PayloadTypes(tenant string) (out []intents.PayloadType) {
	v.s.mu.RLock()
	defer v.s.mu.RUnlock()
	if v.s.agents[tenant] == nil && v.s.agents[systemTenant] == nil { // the built-in agents have none
		return nil
	}
	set, err := v.s.agentsOf(tenant, "", nil)
	if err != nil {
		return nil // it was sound when it was put in force
	}
	for _, a := range set.Agents {
		for _, e := range a.Enrichers {
			out = append(out, intents.PayloadType(e))
		}
	}
	return out
}

// ContentOf a revision: its bundle, or what read finds under its digest.
func ContentOf(bundle, digest string, read func(digest string) ([]byte, error)) (*agents.Revision, error) {
	if bundle == "" {
		return agents.Load(digest, read)
	}
	return agents.Unpack(bundle)
}

// ScopesOf computes the scopes of a pushed registry from its content. Before RulesAsks they
// had no enrichers, and before RulesWorkflows search did not look into the knowledge. The error is a refusal, or that of read.
func ScopesOf(rules intents.Rules, a catalog.RegistryPush, read func(digest string) ([]byte, error)) (agents.Scopes, error) {
	r, err := ContentOf(a.Bundle, a.Digest, read)
	var faults agents.Faults
	switch {
	case errors.As(err, &faults) || err != nil && a.Bundle != "":
		return agents.Scopes{}, illegal("/intent/args/bundle", err.Error())
	case err != nil:
		return agents.Scopes{}, err
	case r.Digest() != a.Digest:
		return agents.Scopes{}, illegal("/intent/args/digest", "the content has another digest")
	}
	if rules < intents.RulesWorkflows && len(r.Workflows) > 0 {
		return agents.Scopes{}, illegal("/intent/args/bundle", r.Workflows[0].File+": is no file of a registry")
	}
	scopes := r.Scopes()
	if rules < intents.RulesAsks {
		for i := range scopes.Agents {
			scopes.Agents[i].Enrichers = nil
		}
	}
	if rules < intents.RulesWorkflows {
		for i, a := range scopes.Agents {
			scopes.Agents[i].Types = slices.DeleteFunc(a.Types, func(typ string) bool { return typ == "kb.search" })
		}
	}
	return scopes, nil
}

// CheckScopes says whether the recorded scopes of a pushed registry are those of its
// content.
func CheckScopes(rules intents.Rules, a catalog.RegistryPush, recorded json.RawMessage, read func(digest string) ([]byte, error)) error {
	scopes, err := ScopesOf(rules, a, read)
	if err != nil {
		return err
	}
	computed, err := json.Marshal(scopes)
	if err != nil || !bytes.Equal(computed, recorded) {
		return errors.New("the recorded scopes are not those of the content")
	}
	return nil
}
