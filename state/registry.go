package state

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/state/agents"
)

// revision of the agents of a tenant, or of system, whose agents every tenant has.
type revision struct {
	Revision int64         `json:"revision"`
	Digest   string        `json:"digest"`
	Bundle   string        `json:"bundle"` // empty: its files are blobs of tenant system
	Scopes   agents.Scopes `json:"scopes"`
	Before   *revision     `json:"before,omitempty"` // the previous one, whose own Before is nil
}

// registryPush puts a revision of a tenant's agents in force. Every set of agents that results
// for a tenant must satisfy the rules of the registry. Open plans continue with the agent that
// they began with. Scopes are computed from the content by the router, or by an auditor.
var registryPush = operators(TypeRegistryPush,
	func(v *View, o Intent, a catalog.RegistryPush) (Effect, error) {
		tenant := TargetTenant(o.Tenant, a.Tenant)
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
		if slices.ContainsFunc(next.Scopes.Agents, func(a agents.Scope) bool { return a.Name == agents.Client }) {
			return Effect{}, illegal("/intent/args", "the name "+agents.Client+" stands for MCP clients: choose another")
		}
		if tenant == systemTenant && next.Scopes.Replaces() {
			return Effect{}, illegal("/intent/args/tenant", "only one tenant's own agents may replace the built-in agent "+agents.General)
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
		v.addRead(SubjectTenant(tenant))
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
		return v.addWritesToReads(accepted(SubjectRegistry))
	},
	func(s *State, o Intent, a catalog.RegistryPush) error {
		tenant := TargetTenant(o.Tenant, a.Tenant)
		next, err := s.nextAgents(tenant, o, a)
		if err == nil {
			s.agents[tenant] = next
		}
		return err
	})

// nextAgents is what an intent puts in force: the previous revision, its own content, or what is
// stored under its digest.
func (s *State) nextAgents(tenant string, o Intent, a catalog.RegistryPush) (*revision, error) {
	next := &revision{Revision: a.Revision, Digest: a.Digest, Bundle: a.Bundle, Scopes: o.Scopes}
	was := s.agents[tenant]
	if a.Bundle == "" {
		switch {
		case s.comesBack(tenant, a.Digest):
			next.Bundle, next.Scopes = was.Before.Bundle, was.Before.Scopes
		case o.Scopes.Agents == nil:
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

// comesBack reports whether a revision of a tenant is the one before the one in force.
func (s *State) comesBack(tenant, digest string) bool {
	was := s.agents[tenant]
	return was != nil && was.Before != nil && was.Before.Digest == digest
}

// ComesBack is comesBack for the tenant that a registry.push names.
func (v *View) ComesBack(tenant, digest string) bool {
	v.s.mu.RLock()
	defer v.s.mu.RUnlock()
	return v.s.comesBack(tenant, digest)
}

// agentsOf are the agents that a tenant has: the built-in ones, over them those of system, over
// them its own; with next, if it is set, as those of the tenant named.
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
	Text    string   `json:"text"`           // its file; empty: built in, or
	File    string   `json:"file,omitempty"` // the digest of its file, a blob of tenant system
	Types   []string `json:"types"`          // of intents that its task may sign
	Seconds int      `json:"seconds"`        // time limit of a task
	// Request and token limits of a task; a step makes at most that many requests.
	Requests int `json:"requests,omitempty"`
	Tokens   int `json:"tokens,omitempty"`
	// Holds are the calls that are held for approval.
	Holds []agents.Hold `json:"holds,omitempty"`
	// Remote is the pin of a remote agent; nil if this system runs it.
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
		return nil // validated when it was put in force
	}
	return runnable(set)
}

func runnable(set agents.Scopes) (names []string) {
	for _, a := range set.Agents {
		if a.Runnable() {
			names = append(names, a.Name)
		}
	}
	return names
}

// runsOf is a tenant's agent as a plan runs it, and the skills that it may call. For whole
// servers, the skills that are approved now count.
func (s *State) runsOf(tenant, name string) (r *runs, skills []string, err error) {
	refuse := func(reason string) (*runs, []string, error) {
		return nil, nil, illegal("/intent/args/agent", reason)
	}
	set, err := s.agentsOf(tenant, "", nil)
	if err != nil {
		return nil, nil, err
	}
	if name == agents.BuiltinGeneral {
		set.Agents = append(slices.Clip(set.Agents), builtinGeneral())
	}
	i := slices.IndexFunc(set.Agents, func(a agents.Scope) bool { return a.Name == name && a.Runnable() })
	if i < 0 {
		return refuse(catalog.Like("the tenant has no such agent that can be run", name, runnable(set)))
	}
	if r, skills, err = s.scoped(tenant, set.Agents[i]); err == nil {
		r.asking, err = s.askable(tenant, set.Agents[i], set)
	}
	return r, skills, err
}

// builtinGeneral is the built-in agent under the name that nothing replaces.
func builtinGeneral() agents.Scope {
	all := agents.BuiltinScopes().Agents
	a := all[slices.IndexFunc(all, func(a agents.Scope) bool { return a.Name == agents.General })]
	a.Name = agents.BuiltinGeneral
	return a
}

// RuleReplace is the rule that holds a push that replaces a built-in agent until a second person
// of the pusher's tenant has approved it.
const RuleReplace = "writ.registry.replace"

// ReplaceRule returns that rule for the scopes of a pushed registry, if it applies.
func (d *Directory) ReplaceRule(tenant string, scopes json.RawMessage) []intents.HoldRule {
	var pushed agents.Scopes
	if json.Unmarshal(scopes, &pushed) != nil || !pushed.Replaces() { // an earlier revision without scopes was approved then
		return nil
	}
	rule := intents.HoldRule{ID: RuleReplace, Reason: "the agents replace the built-in agent " + agents.General, Roles: []string{}, FourEyes: true}
	if t := d.tenants[tenant]; t != nil {
		rule.Roles = t.rolesThatApprove()
	}
	return []intents.HoldRule{rule}
}

// scoped is a tenant's agent without those that it may ask.
func (s *State) scoped(tenant string, a agents.Scope) (r *runs, skills []string, err error) {
	r = &runs{Types: a.Types, Seconds: a.Limits.Seconds, Holds: a.Holds, Requests: a.Limits.Requests, Tokens: a.Limits.Tokens}
	if slices.Contains(a.Types, "skill.call") { // a search may find which of many skills it needs
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

// agentGet delivers the agent of a plan, or of a step of it, to a task of that plan, in the
// revision that the plan began with. A planner also receives the agents that the steps of its
// plan may name.
var agentGet = newTransition("agent.get",
	func(v *View, o Intent, _ catalog.AgentGet) (Effect, error) {
		v.addRead(SubjectPlanState(o.Tenant, o.Context.PlanID))
		p, ok := v.s.plans[o.Tenant+"/"+o.Context.PlanID]
		if !ok || p.View.Status.Ended() {
			return Effect{}, illegal("/context/plan_id", "no open plan")
		}
		if p.Runs == nil && o.Context.Step == 0 {
			offers := v.offers
			if p.Routing != nil {
				offers = v.routableAgents
			}
			others, err := offers(o, p)
			return Effect{Result: catalog.AgentGetResult{Others: others}}, err
		}
		if p.Runs == nil { // a revision may give its steps to others
			v.addPlanReads(p)
		}
		name, runs := p.agentAt(o.Context.Step)
		if t := v.s.tasks[o.Tenant+"/"+o.Context.TaskID]; t != nil && t.plan == p && t.Ask != "" {
			name, runs = t.Agent, p.Runs.Asks[t.Agent]
		}
		if runs == nil || p.ofClient() {
			return Effect{}, illegal("/context/step", "no agent runs the step")
		}
		return Effect{Result: catalog.AgentGetResult{Agent: name, Text: runs.Text, File: runs.File, TimeLimitSec: runs.Seconds, Others: runs.others()}}, nil
	},
	func(*State, Intent, catalog.AgentGet) error { return nil })

// inTime refuses a task of an agent that could run longer than the agent may.
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

// Registry describes a tenant's agents in force.
type Registry struct {
	Revision int64    `json:"revision"`
	Digest   string   `json:"digest"`
	Before   string   `json:"before,omitempty"` // digest of the revision before
	Agents   []string `json:"agents"`

	Workflows []string `json:"workflows,omitempty"`
}

// registryOf a tenant; nil if nothing was pushed.
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

// ScopesOf are the scopes of the agents that a tenant has pushed, without those of system.
func (s *State) ScopesOf(tenant string) (of agents.Scopes) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if r := s.agents[tenant]; r != nil {
		of = r.Scopes
	}
	return of
}

// InForce is the revision of a tenant's agents in force, its digest, and its bundle; no digest: there is
// none.
func (s *State) InForce(tenant string) (number int64, digest, bundle string) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if r := s.agents[tenant]; r != nil {
		number, digest, bundle = r.Revision, r.Digest, r.Bundle
	}
	return number, digest, bundle
}

// BeforeInForce is the digest and bundle of the revision before the one in force; no digest:
// there is none.
func (s *State) BeforeInForce(tenant string) (digest, bundle string) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if r := s.agents[tenant]; r != nil && r.Before != nil {
		digest, bundle = r.Before.Digest, r.Before.Bundle
	}
	return digest, bundle
}

// SchemaRows are the rows of a tenant's agents and workflows in force, and of those that only
// the previous revision had. read reads blobs of tenant system.
func (s *State) SchemaRows(tenant string, read func(digest string) ([]byte, error)) (rows []catalog.SchemaRow, err error) {
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
			rows = append(rows, catalog.SchemaRow{Name: a.Name, Kind: catalog.KindRemoved, Schema: json.RawMessage(`{}`), ID: a.Name})
		}
	}
	for _, g := range r.Before.Scopes.Workflows {
		if _, still := content.Workflow(g.WorkflowID); !still {
			rows = append(rows, catalog.SchemaRow{Name: g.WorkflowID, Kind: catalog.KindRemoved, Schema: json.RawMessage(`{}`), ID: agents.FlowID(g.WorkflowID)})
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
		return nil // validated when it was put in force
	}
	for _, a := range set.Agents {
		for _, e := range a.Enrichers {
			out = append(out, intents.PayloadType(e))
		}
	}
	return out
}

// ContentOf returns a revision's content: its bundle, or what read finds under its digest.
func ContentOf(bundle, digest string, read func(digest string) ([]byte, error)) (*agents.Revision, error) {
	if bundle == "" {
		return agents.Load(digest, read)
	}
	return agents.Unpack(bundle)
}

// Revisions caches the parsed registries in force, by tenant. The zero value is ready, and safe
// for concurrent use.
type Revisions struct {
	mu       sync.Mutex
	byDigest map[string]*agents.Revision
}

// Get is the registry of a tenant by its bundle and digest, each read once; nil if it has none.
func (r *Revisions) Get(tenant, bundle, digest string, read func(digest string) ([]byte, error)) (*agents.Revision, error) {
	if digest == "" {
		return nil, nil //nolint:nilnil // none is an answer
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := r.byDigest[tenant]; now != nil && now.Digest() == digest {
		return now, nil
	}
	now, err := ContentOf(bundle, digest, read)
	if err != nil {
		return nil, err
	}
	if r.byDigest == nil {
		r.byDigest = map[string]*agents.Revision{}
	}
	r.byDigest[tenant] = now
	return now, nil
}

// ScopesOf computes the scopes of a pushed registry from its content. The error is
// a refusal, or that of read.
func ScopesOf(a catalog.RegistryPush, read func(digest string) ([]byte, error)) (agents.Scopes, error) {
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
	return r.Scopes(), nil
}

// CheckScopes reports whether the recorded scopes of a pushed registry are those of its content.
func CheckScopes(a catalog.RegistryPush, recorded json.RawMessage, read func(digest string) ([]byte, error)) error {
	scopes, err := ScopesOf(a, read)
	if err != nil {
		return err
	}
	computed, err := json.Marshal(scopes)
	if err != nil || !bytes.Equal(computed, recorded) {
		return errors.New("the recorded scopes are not those of the content")
	}
	return nil
}
