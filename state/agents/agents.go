// Package agents has the definitions of agents and their registry.
//
// An agent is one flat document (schemas/agent.schema.json), written in one of three equivalent
// ways: a YAML or JSON file ([Parse]), a Go struct ([Of]), or a literal ([New]):
//
//	name: ranker
//	description: |
//	  You rank outlets. Search before answering.
//	properties:
//	  topic:
//	    type: string
//	    description: Primary topic of the question
//	tools:
//	  - server: crm
//	    name: list_outlets
//
// A directory of them, with prompts and skills, is a [Revision] of the registry. Its [Scopes]
// are all that is needed to judge the intents of an agent.
package agents

import (
	"cmp"
	"embed"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/state/workflows"
)

// Agent is the definition of one agent, as returned by Parse, Of and New: valid, with all
// limits. Do not modify.
type Agent struct {
	Type         string `json:"type,omitempty"` // Remote; else empty
	Name         string `json:"name"`
	DisplayName  string `json:"display_name,omitempty"`
	Description  string `json:"description"`            // for people, routers and other agents
	Instructions string `json:"instructions,omitempty"` // the system prompt; empty: Description

	// Properties are what to consider before answering, or with Structured the members of the
	// result. Required are those that a result always has; none: all.
	Properties Properties `json:"properties,omitempty"`
	Required   []string   `json:"required,omitempty"`
	Structured bool       `json:"structured_output,omitempty"`

	Tools     []Tool   `json:"tools,omitempty"`
	SubAgents []string `json:"sub_agents,omitempty"`

	Model       string   `json:"model,omitempty"`       // empty: the default
	Temperature *float64 `json:"temperature,omitempty"` // nil: the model's own
	Stop        []string `json:"stop,omitempty"`
	MaxTokens   int      `json:"max_tokens,omitempty"`     // of one reply; 0: the operator's setting
	Effort      string   `json:"effort,omitempty"`         // of thinking; empty: likewise
	Parallel    *bool    `json:"parallel_calls,omitempty"` // whether a reply may have several calls; nil: likewise
	Limits      Limits   `json:"limits,omitzero"`

	StatusEvents map[string]StatusEvent `json:"status_events,omitempty"`
	Enrichers    []Enricher             `json:"enrichers,omitempty"`

	*Routing // nil: nothing is routed to it
	// Of a remote one: where its server is, and whether a message may be sent to it twice.
	Endpoint   string `json:"endpoint,omitempty"`
	Idempotent bool   `json:"idempotent,omitempty"`
}

// Remote is the type of an agent that runs on a server.
const Remote = "mcp"

// Tool is what an agent may call: a tool of this system, one of a skill server, or all
// approved tools of a server.
type Tool struct {
	Server      string    `json:"server,omitempty"` // empty: this system; AllServers
	Name        string    `json:"name,omitempty"`   // empty: all of the server
	Description string    `json:"description,omitempty"`
	Status      string    `json:"status,omitempty"` // of StatusEvents: reported when a call starts
	Approval    *Approval `json:"approval,omitempty"`
}

// StatusOf is the status of calls of a tool, by its id; empty if it has none. An entry for the
// tool itself precedes one for its server.
func (a *Agent) StatusOf(id string) string {
	server, _, _ := strings.Cut(id, ".")
	for _, name := range []string{id, server + ".*", "*.*"} {
		for _, t := range a.Tools {
			if t.ID() == name && t.Status != "" {
				return t.Status
			}
		}
	}
	return ""
}

// Has reports whether the agent has a tool of this system.
func (a *Agent) Has(name string) bool {
	return slices.ContainsFunc(a.Tools, func(t Tool) bool { return t.ID() == name })
}

// AllServers stands for every skill server of the tenant.
const AllServers = "*"

// ID of a skill is <server>.<tool>; of a tool of this system its name.
func (t Tool) ID() string {
	switch {
	case t.Server == "":
		return t.Name
	case t.Name == "":
		return t.Server + ".*"
	}
	return t.Server + "." + t.Name
}

// Limits of one run of an agent; zero values stand for the defaults.
type Limits struct {
	Requests   int `json:"request_limit,omitempty"`      // requests to the model
	Tokens     int `json:"total_tokens_limit,omitempty"` // input and output together
	Seconds    int `json:"time_limit_sec,omitempty"`
	AskSeconds int `json:"ask_time_limit_sec,omitempty"` // of an agent that it asks
	FanOut     int `json:"max_fan_out,omitempty"`        // agents that it asks at once
}

// The default limits.
const (
	DefaultRequests   = 50
	DefaultTokens     = 500_000
	DefaultSeconds    = 300
	DefaultAskSeconds = 60
	DefaultFanOut     = 3
)

// MaxSeconds is the highest time limit: that of a task.
const MaxSeconds = 3600

// Time is how long a run may continue before it makes its last request.
func (l Limits) Time() time.Duration { return time.Duration(l.Seconds) * time.Second }

func (l Limits) withDefaults() Limits {
	return Limits{
		Requests:   cmp.Or(l.Requests, DefaultRequests),
		Tokens:     cmp.Or(l.Tokens, DefaultTokens),
		Seconds:    cmp.Or(l.Seconds, DefaultSeconds),
		AskSeconds: cmp.Or(l.AskSeconds, DefaultAskSeconds),
		FanOut:     cmp.Or(l.FanOut, DefaultFanOut),
	}
}

// Approval holds the calls of a tool until a person approves.
type Approval struct {
	Roles []string        `json:"roles"`          // roles of the approvers
	When  json.RawMessage `json:"when,omitempty"` // JSON Schema of the arguments that need approval; nil: every call does
}

// StatusEvent determines how a status that a tool reports is shown to a user.
type StatusEvent struct {
	Show  string            `json:"show,omitempty"`  // forward, transform, batch, suppress; empty: forward
	Words map[string]string `json:"words,omitempty"` // by locale
}

// Enricher types the payload of a skill's response.
type Enricher struct {
	DomainType string          `json:"domain_type"`
	EnricherID string          `json:"enricher_id"`
	Schema     json.RawMessage `json:"schema"`
	Version    string          `json:"version"`
}

// Routing determines which requests are routed to an agent.
type Routing struct {
	RoutingRule
	Examples             []string `json:"examples,omitempty"`
	ClarificationContext string   `json:"clarification_context,omitempty"`
}

// RoutingRule is the part of Routing that decides.
type RoutingRule struct {
	Default   bool    `json:"is_default"`
	Threshold float64 `json:"confidence_threshold"` // 0 for the default
	Clarify   bool    `json:"clarification_required,omitempty"`
}

// The built-in agents.
const (
	Planner    = "planner"
	Executor   = "executor"
	Composer   = "composer"
	Classifier = "classifier"
	Producer   = "producer"
	General    = "general"
	Dreaming   = "dreaming-agent"
	Sample     = "sample-agent"
)

// BuiltinGeneral is always the built-in agent of the name General, which a tenant may replace.
const BuiltinGeneral = "writ/" + General

// replaceable reports whether a tenant's own agent may have the name of a built-in one.
func replaceable(name string) bool { return name == General }

// Client is the agent of the plan of an MCP client's session, in which the client does the
// reasoning: it has no definition. The name is reserved.
const Client = "client"

// exact are the agents whose replies become intents or decide where a request goes.
var exact = []string{Planner, Executor, Classifier, Producer}

// maxExact is the highest temperature of their requests.
const maxExact = 0.2

//go:embed *.yaml
var files embed.FS

var builtin = sync.OnceValues(func() (map[string]*Definition, error) {
	all := make(map[string]*Definition)
	entries, err := files.ReadDir(".")
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		text, err := files.ReadFile(e.Name())
		if err != nil {
			return nil, err
		}
		d, faults := define(e.Name(), text)
		if len(faults) > 0 {
			return nil, faults
		}
		if d.Name+".yaml" != e.Name() {
			return nil, fmt.Errorf("%s: its agent is named %q", e.Name(), d.Name)
		}
		d.Limits.Seconds, d.Limits.AskSeconds = MaxSeconds, MaxSeconds
		all[d.Name] = d
	}
	return all, nil
})

// Builtin is a built-in agent. It panics on an unknown name. Its time limits are the most that the
// router allows: those who run it have shorter ones in their settings.
func Builtin(name string) *Agent {
	d, ok := builtins()[strings.TrimPrefix(name, "writ/")]
	if !ok {
		panic("no built-in agent " + name)
	}
	return d.Agent
}

// Builtins are the built-in agents, by name. Their names are reserved, except that a tenant may
// replace General.
func Builtins() []*Definition {
	return slices.SortedFunc(maps.Values(builtins()), func(a, b *Definition) int { return strings.Compare(a.Name, b.Name) })
}

func builtins() map[string]*Definition {
	all, err := builtin()
	if err != nil {
		panic(err) // a file of this package
	}
	return all
}

// Row is the agent as it is stored and listed: its prompt, and its definition as a
// JSON Schema.
func (a *Agent) Row() (catalog.SchemaRow, error) {
	schema := *a
	schema.Type = "object"
	raw, err := json.Marshal(schema)
	return catalog.SchemaRow{Name: a.Name, Kind: catalog.KindAgent, Content: a.System(""), Schema: raw, ID: a.Name}, err
}

// FlowRow is a workflow as it is stored and listed: its file, and its graph.
func FlowRow(d *workflows.Definition) (catalog.SchemaRow, error) {
	raw, err := json.Marshal(d.Graph)
	return catalog.SchemaRow{Name: d.WorkflowID, Kind: catalog.KindWorkflow, Content: string(d.Text), Schema: raw, ID: FlowID(d.WorkflowID)}, err
}

// FlowID of a stored workflow: no agent has such a name.
func FlowID(workflow string) string { return "workflow:" + workflow }
