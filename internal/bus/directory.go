package bus

import (
	"encoding/json"
	"time"
)

// Requests of the gateway to the router. They look up identities and change nothing;
// only the gateway's user may send them. A reply to a malformed request has Error set.

// APIKeyRequest asks on DirectoryAPIKey whose a key is.
type APIKeyRequest struct {
	Hash string `json:"hash"` // "sha256:<hex>" of the key's text
}

// APIKeyReply answers it. A key that is unknown or revoked is not Found.
type APIKeyReply struct {
	Found         bool     `json:"found"`
	ID            string   `json:"id,omitempty"`
	Tenant        string   `json:"tenant,omitempty"`
	UserID        string   `json:"user_id,omitempty"` // whose the key is
	MaxRoles      []string `json:"max_roles,omitempty"`
	MayAssertUser bool     `json:"may_assert_user,omitempty"` // may act for other users of its tenant
	Error         string   `json:"error,omitempty"`
}

// UserRequest asks on DirectoryUser what roles a user has now. KeyID, if given, is the
// API key that the user came with: its max_roles limit the roles too, and without the
// key no role is left.
type UserRequest struct {
	Tenant string   `json:"tenant"`
	UserID string   `json:"user_id"`
	KeyID  string   `json:"key_id,omitempty"`
	Roles  []string `json:"roles"`
	// Capability, if given, is one that the roles may cover.
	Capability string `json:"capability,omitempty"`
	// Agents: name those of the tenant that can be run; with roles, by these.
	Agents bool `json:"agents,omitempty"`
	// Skills: name those that MCP clients may use with the key.
	Skills bool `json:"skills,omitempty"`
}

// UserReply answers it: those of the requested roles that the user's row allows; a user
// without a row keeps them all. Disabled: the user, tenant or key may do nothing any
// more.
type UserReply struct {
	Roles    []string `json:"roles"`
	Disabled bool     `json:"disabled,omitempty"`
	May      bool     `json:"may,omitempty"`   // these roles cover the capability
	Spent    string   `json:"spent,omitempty"` // beside it: which budget of models is spent; empty: none
	// Grants of the user from before this time are void: none is issued until then.
	RevokedBefore time.Time       `json:"revoked_before,omitzero"`
	Error         string          `json:"error,omitempty"`
	Agents        []string        `json:"agents,omitempty"` // if they were asked for
	Skills        json.RawMessage `json:"skills,omitempty"` // []intents.Pin, likewise
}

// RegistryRequest asks on DirectoryRegistry for the agents that a tenant has in force.
type RegistryRequest struct {
	Tenant string `json:"tenant"`
}

// RegistryReply answers it. No digest: no agents are in force.
type RegistryReply struct {
	Digest   string    `json:"digest,omitempty"`
	Bundle   string    `json:"bundle,omitempty"` // their files; empty: they are blobs of tenant system
	Breakers []Breaker `json:"breakers"`         // of skill servers and remote agents that have failed the tenant
	Error    string    `json:"error,omitempty"`
}

// Breaker is the circuit breaker of a skill server or a remote agent.
type Breaker struct {
	Server   string    `json:"server"`
	Status   string    `json:"status"`              // closed, open or half_open
	Failures int       `json:"failures"`            // in a row
	Since    time.Time `json:"since,omitzero"`      // it is not closed
	Next     time.Time `json:"next_probe,omitzero"` // when the server is called again; zero: now
}

// SilentRequest asks on PlansSilent for open plans that no manager drives: opened before
// this router started and not claimed since, not claimed long after their hand-out, or
// released from a hold. A plan that waits for a hold is not one. The answer also has the
// schedules that are due.
type SilentRequest struct{}

// SilentReply answers it, oldest first. Dreams are the last turns of sessions that it is
// time to dream of.
type SilentReply struct {
	Plans  []SilentPlan    `json:"plans"`
	Due    json.RawMessage `json:"due"`    // []catalog.Schedule, Next being the newest time that has come; not all at once
	Dreams []SilentPlan    `json:"dreams"` // the last turns of sessions that it is time to dream of
	Left   []SilentPlan    `json:"left"`   // plans of MCP clients to be ended: nothing comes of them any more
	Error  string          `json:"error,omitempty"`
	// Patched are runs that are driven and have another graph than they began with.
	Patched []SilentPlan `json:"patched,omitempty"`
	// Claimed are the open plans that a driver has claimed and that do not wait for a hold, where
	// drivers are processes of their own: a router does not see them die.
	Claimed []SilentPlan `json:"claimed,omitempty"`
}

// SilentPlan is what a gateway needs to hand a plan out again: the plan.open that made
// it and the claims of its grant.
type SilentPlan struct {
	Tenant    string    `json:"tenant"`
	UserID    string    `json:"user_id"`
	PlanID    string    `json:"plan_id"`
	SessionID string    `json:"session_id"`
	TurnID    string    `json:"turn_id"`
	Task      string    `json:"task"`   // the question
	Epoch     int       `json:"epoch"`  // for HandOut.Epoch
	Roles     []string  `json:"roles"`  // of the first grant
	Client    string    `json:"client"` // act.client of the first grant: ClientOfKey(id)
	OpenedAt  time.Time `json:"opened_at"`
	TraceID   string    `json:"trace_id,omitempty"`
	Done      bool      `json:"done,omitempty"` // of a client: its step is
	Run       bool      `json:"run,omitempty"`  // of a workflow
	Revision  int       `json:"revision,omitempty"`
	Days      int       `json:"days,omitempty"` // of a run: for how long it may go on without its user
}
