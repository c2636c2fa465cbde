package catalog

import "aob.dev/writ/intents"

var registryRows = []Row{
	{Type: "registry.push", Title: "Put a revision of the agents in force", Capability: "admin:registry", Signers: []intents.Role{intents.RoleOperator, intents.RoleGateway}, Executor: ExecutorRouter, Effect: Idempotent},
	{Type: "agent.get", Title: "Read the agent of a plan", Capability: "plans:run", Signers: []intents.Role{intents.RoleManager, intents.RolePlanner, intents.RoleTask}, Executor: ExecutorRouter, Effect: Pure},
}

// RegistryPush are the arguments of registry.push: the agents of a tenant, or with
// tenant system of all tenants. Without a Bundle it restores the revision before the one in
// force, which the state has; or content that is too large for an intent
// and was stored before, as blobs of tenant system (agents.Revision.Keep).
type RegistryPush struct {
	Tenant   string `json:"tenant,omitempty"` // operators of system only
	Revision int64  `json:"revision"`         // higher than the one in force
	Digest   string `json:"digest"`           // of the content (agents.Revision.Digest)
	Bundle   string `json:"bundle,omitempty"` // agents.Revision.Pack
}

// AgentGet are the arguments of agent.get: the agent is that of the intent's plan, or of
// the step that its context names.
type AgentGet struct{}

// AgentGetResult is the result of agent.get. A built-in agent has no text here: each
// process has it.
type AgentGetResult struct {
	Agent        string `json:"agent,omitempty"`
	Text         string `json:"text,omitempty"` // its file, in the revision that the plan began with
	File         string `json:"-"`              // the digest of its file, where the router is to read the text
	TimeLimitSec int    `json:"time_limit_sec,omitempty"`
	// Others are the agents that it may ask, that a planner's steps may name, or
	// that routing may choose; then all other members are empty.
	Others []OtherAgent `json:"others,omitempty"`
}

// OtherAgent is an agent as one that may give it work knows it.
type OtherAgent struct {
	Agent       string `json:"agent"`
	DisplayName string `json:"display_name,omitempty"`
	Description string `json:"description"`
	File        string `json:"-"` // as above, of names and description

	TimeLimitSec int           `json:"time_limit_sec"`    // of the tasks that others ask of it
	Routing      *RoutingTerms `json:"routing,omitempty"` // of an agent that routing may choose
}
