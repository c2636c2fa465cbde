package agents

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"aob.dev/writ/state/workflows"
)

// Scopes contain the permissions of every agent of a revision and the graph of every workflow.
// They are computed from the revision's content, so anyone who has it can check them. They are
// part of the record of its push, and are all that judges the intents of an agent's tasks.
type Scopes struct {
	Agents    []Scope            `json:"agents"`              // by name
	Workflows []*workflows.Graph `json:"workflows,omitempty"` // by id
}

// maxScopes is the maximum length of the JSON of Scopes, in bytes.
const maxScopes = 256 << 10

// maxTypes is the maximum length of the schemas of a revision's enrichers, in bytes: they are
// part of tickets.
const maxTypes = 128 << 10

// Scope is the permissions of one agent.
type Scope struct {
	Name   string `json:"name"`
	Digest string `json:"digest"` // of the agent's file
	Remote bool   `json:"remote,omitempty"`
	// Idempotent: it is remote, and a message may be sent to it twice.
	Idempotent bool `json:"idempotent,omitempty"`

	Types   []string `json:"types"`             // of intents
	Skills  []string `json:"skills,omitempty"`  // by full id
	Servers []string `json:"servers,omitempty"` // whose approved skills it may all call; AllServers
	Holds   []Hold   `json:"holds,omitempty"`

	SubAgents []string `json:"sub_agents,omitempty"`
	AskAny    bool     `json:"ask_any,omitempty"` // it may ask every local agent

	Limits    Limits       `json:"limits"`
	Routing   *RoutingRule `json:"routing,omitempty"`
	Enrichers []Enricher   `json:"enrichers,omitempty"`
}

// Runnable reports whether people can have the agent carry out a request. The others work for
// plans.
func (s Scope) Runnable() bool {
	return s.Name != Composer && !slices.Contains(exact, s.Name)
}

// OfServer reports whether a skill belongs to one of the whole servers that the agent may call.
func (s Scope) OfServer(skill string) bool {
	server, _, _ := strings.Cut(skill, ".")
	return slices.Contains(s.Servers, AllServers) || slices.Contains(s.Servers, server)
}

// Hold is an approval that the calls of a tool need.
type Hold struct {
	Tool string `json:"tool"` // id of a skill, <server>.* or *.* for all of them, or a tool of this system
	Approval
}

// ofEveryTask are the intents that every task may sign: its text, its files, its end.
var ofEveryTask = []string{"agent.get", "exec_python", "read_lines", "step.finish", "transcript.get"}

// local are the tools of this system, with the intents that each signs.
var local = map[string][]string{
	"search":               {"kb.search", "memory.query", "read_memory"},
	"action":               {"action"},
	"remind_me":            {"schedule.delete", "schedule.list", "schedule.put"},
	AskAgent:               {"agent.ask"},
	"ask_people":           {"approval.ask"},
	"find_relevant_skills": {"skill.find"},
	"load_skill":           {"skill.load"},
	"read_lines":           {"read_lines"},
	"exec_python":          {"exec_python"},
	"write_memory":         {"write_memory"},
}

// ownedBy are the tools that only one built-in agent has.
var ownedBy = map[string]string{"find_relevant_skills": Planner, "load_skill": Planner, "write_memory": Executor}

// localTools are those that every agent may have.
func localTools() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(local)), func(name string) bool { return has(ownedBy, name) })
}

// ofSkills are the intents of agents that call skills.
var ofSkills = []string{"skill.call", "skill.load"}

// ofRemote are the intents of a task that stands for a remote agent.
var ofRemote = []string{"skill.call", "step.finish", "transcript.get"}

// MessageSkill is the one tool of a remote agent, as a skill.
func (a *Agent) MessageSkill() string { return a.Name + ".handle_message" }

func (d *Definition) scope() Scope {
	s := Scope{
		Name: d.Name, Digest: d.Digest, Types: slices.Clone(ofEveryTask),
		SubAgents: d.SubAgents, AskAny: d.asksAny(), Limits: d.Limits, Enrichers: d.Enrichers,
	}
	if d.Routing != nil {
		rule := d.RoutingRule
		s.Routing = &rule
	}
	if d.Type == Remote {
		s.Remote, s.Idempotent, s.Types, s.Skills = true, d.Idempotent, ofRemote, []string{d.MessageSkill()}
		return s
	}
	for _, t := range d.Tools {
		switch {
		case t.Server == "":
			s.Types = append(s.Types, local[t.Name]...)
		case t.Name == "":
			s.Servers = append(s.Servers, t.Server)
		default:
			s.Skills = append(s.Skills, t.ID())
		}
		if t.Approval != nil {
			s.Holds = append(s.Holds, Hold{t.ID(), *t.Approval})
		}
	}
	if len(s.Skills)+len(s.Servers) > 0 {
		s.Types = append(s.Types, ofSkills...)
	}
	if len(s.SubAgents) > 0 {
		s.Types = append(s.Types, local[AskAgent]...)
	}
	slices.Sort(s.Types)
	s.Types = slices.Compact(s.Types)
	slices.Sort(s.Skills)
	slices.Sort(s.Servers)
	return s
}

// Replaces reports whether one of the agents replaces a built-in one.
func (s Scopes) Replaces() bool {
	return slices.ContainsFunc(s.Agents, func(a Scope) bool { return replaceable(a.Name) })
}

func scopesOf(all []*Definition) Scopes {
	out := Scopes{Agents: []Scope{}}
	for _, d := range all {
		out.Agents = append(out.Agents, d.scope())
	}
	return out
}

// BuiltinScopes are those of the built-in agents.
func BuiltinScopes() Scopes { return scopesOf(Builtins()) }

// Effective is the set of one tenant: the built-in agents, over them the layers (those of the
// system, then the tenant's own). An agent or a workflow hides those of its name below; of
// several defaults only the nearest counts and is in the result. The error is Faults: every way
// in which the set breaks a rule of the registry.
func Effective(builtin Scopes, layers ...Scopes) (Scopes, error) {
	set, nearest, found := merge(builtin, layers)
	out := Scopes{
		Agents:    slices.SortedFunc(maps.Values(set), func(a, b Scope) int { return strings.Compare(a.Name, b.Name) }),
		Workflows: flows(layers),
	}
	for _, g := range out.Workflows {
		found = append(found, unknownAgents(g, set)...)
	}
	routed := false
	for i, s := range out.Agents {
		for j, name := range s.SubAgents {
			if !has(set, name) {
				found = append(found, Fault{Agent: s.Name, Pointer: fmt.Sprintf("/sub_agents/%d", j), Reason: "there is no agent " + name + ": add it, or take it from the list"})
			}
		}
		if s.AskAny && len(s.SubAgents) > 0 {
			found = append(found, Fault{Agent: s.Name, Pointer: "/sub_agents", Reason: notBoth})
		}
		if s.Routing == nil {
			continue
		}
		if nearest == "" && !routed {
			found = append(found, Fault{Agent: s.Name, Pointer: "/is_default", Reason: "no agent is the default: set is_default of one, with confidence_threshold 0"})
		}
		routed = true
		rule := *s.Routing
		rule.Default = s.Name == nearest
		out.Agents[i].Routing = &rule
	}
	if len(found) > 0 {
		return Scopes{}, found
	}
	return out, nil
}

// flows are the workflows of layers, by id; the nearest one of an id counts.
func flows(layers []Scopes) []*workflows.Graph {
	set := map[string]*workflows.Graph{}
	for _, layer := range layers {
		for _, g := range layer.Workflows {
			set[g.WorkflowID] = g
		}
	}
	return slices.SortedFunc(maps.Values(set), func(a, b *workflows.Graph) int { return strings.Compare(a.WorkflowID, b.WorkflowID) })
}

// unknownAgents finds the nodes whose agent does not exist, or is not Runnable.
func unknownAgents(g *workflows.Graph, set map[string]Scope) (found Faults) {
	for i, n := range g.Nodes {
		if a, ok := set[n.Fn]; n.Type == workflows.Agent && (!ok || !a.Runnable()) {
			found = append(found, Fault{Workflow: g.WorkflowID, Pointer: fmt.Sprintf("/nodes/%d/fn", i), Reason: "there is no agent " + n.Fn + " that can be run: add it, or name another"})
		}
	}
	return found
}

// merge lays the layers over each other. nearest is the default agent; empty if none.
func merge(builtin Scopes, layers []Scopes) (set map[string]Scope, nearest string, found Faults) {
	set = make(map[string]Scope)
	for _, s := range builtin.Agents {
		set[s.Name] = s
	}
	reserved := maps.Clone(set)
	maps.DeleteFunc(reserved, func(name string, _ Scope) bool { return replaceable(name) })
	for _, layer := range layers {
		here := map[string]bool{}
		standard := ""
		for _, s := range layer.Agents {
			fault := func(pointer, reason string) {
				found = append(found, Fault{Agent: s.Name, Pointer: pointer, Reason: reason})
			}
			switch {
			case has(reserved, s.Name):
				fault("/name", "is the name of a built-in agent: choose another")
			case here[s.Name]:
				fault("/name", "is the name of two agents: rename one of them")
			}
			here[s.Name] = true
			set[s.Name] = s
			switch {
			case s.Routing == nil || !s.Routing.Default:
			case standard != "":
				fault("/is_default", standard+" is the default already: make it false here or there")
			case s.Routing.Threshold != 0:
				fault("/confidence_threshold", notZero)
			default:
				standard = s.Name
			}
		}
		switch {
		case standard != "":
			nearest = standard
		case here[nearest]:
			nearest = "" // hidden by an agent that is no default
		}
	}
	return set, nearest, found
}

// Covers reports whether an intent is a call of the held tool. skill is the full id of the skill
// that the intent calls, if it calls one.
func (h Hold) Covers(typ, skill string) bool {
	if typ != "skill.call" {
		return slices.Contains(local[h.Tool], typ)
	}
	server, _, _ := strings.Cut(skill, ".")
	return h.Tool == skill || h.Tool == server+".*" || h.Tool == AllServers+".*"
}
