package bus

import (
	"encoding/json"
	"time"
)

// Requests of the gateway to the router. They look up identities and change nothing; only the
// gateway's user may send them. The reply to a malformed request has Error set.

// APIKeyRequest asks on DirectoryAPIKey for the owner of a key.
type APIKeyRequest struct {
	Hash string `json:"hash"` // "sha256:<hex>" of the key's text
}

// APIKeyReply answers an APIKeyRequest. Found is false if the key is unknown or revoked.
type APIKeyReply struct {
	Found         bool     `json:"found"`
	ID            string   `json:"id,omitempty"`
	Tenant        string   `json:"tenant,omitempty"`
	UserID        string   `json:"user_id,omitempty"` // owner of the key
	MaxRoles      []string `json:"max_roles,omitempty"`
	MayAssertUser bool     `json:"may_assert_user,omitempty"` // may act for other users of its tenant
	FrontEnd      bool     `json:"front_end,omitempty"`       // is a chat program's
	InPerson      bool     `json:"in_person,omitempty"`       // is one person's, for the console and terminals
	Error         string   `json:"error,omitempty"`
}

// UserRequest asks on DirectoryUser for the current roles of a user. KeyID, if given, is the API
// key that the user presented: its max_roles limit the roles too, and an unknown key leaves none.
type UserRequest struct {
	Tenant string   `json:"tenant"`
	UserID string   `json:"user_id"`
	KeyID  string   `json:"key_id,omitempty"`
	Roles  []string `json:"roles"`
	// Capability, if given, is checked against the roles.
	Capability string `json:"capability,omitempty"`
	// Agents requests the agents of the tenant that can be run; with roles, those that the roles
	// may run.
	Agents bool `json:"agents,omitempty"`
	// Skills requests the skills that MCP clients may use with the key.
	Skills bool `json:"skills,omitempty"`
	// Keys requests the API keys that are the user's own.
	Keys bool `json:"keys,omitempty"`
}

// UserReply answers a UserRequest: the requested roles that the user's row allows; a user without
// a row has all of them. Disabled: the user, tenant or key is disabled.
type UserReply struct {
	Roles       []string `json:"roles"`
	Disabled    bool     `json:"disabled,omitempty"`
	Operator    bool     `json:"operator,omitempty"` // an operator's key is in force under this name
	May         bool     `json:"may,omitempty"`      // the roles cover the capability
	SpentBudget string   `json:"spent,omitempty"`    // the model budget that is exhausted; empty: none
	// RevokedBefore voids the user's grants issued earlier; none is issued until then.
	RevokedBefore time.Time       `json:"revoked_before,omitzero"`
	Error         string          `json:"error,omitempty"`
	Agents        []string        `json:"agents,omitempty"`  // if requested
	Skills        json.RawMessage `json:"skills,omitempty"`  // []intents.Pin, if requested
	Keys          json.RawMessage `json:"keys,omitempty"`    // []catalog.APIKey without hashes, if requested
	Stopped       json.RawMessage `json:"stopped,omitempty"` // catalog.Stopped of the tenant; absent: nothing is
	Position      int64           `json:"position"`          // of the newest record
}

// SkillAnswersRequest asks on SkillAnswers for the cached answers that serve a user.
type SkillAnswersRequest struct {
	Tenant string `json:"tenant"`
	UserID string `json:"user_id"`
}

// RegistryRequest asks on DirectoryRegistry for the agents of a tenant that are in force.
type RegistryRequest struct {
	Tenant string `json:"tenant"`
}

// RegistryReply answers a RegistryRequest. No digest: no agents are in force.
type RegistryReply struct {
	Revision int64     `json:"revision,omitempty"`
	Digest   string    `json:"digest,omitempty"`
	Bundle   string    `json:"bundle,omitempty"` // bundle of the files; empty: they are blobs of tenant system
	Breakers []Breaker `json:"breakers"`         // of skill servers and remote agents that have failed for the tenant
	Error    string    `json:"error,omitempty"`
}

// Breaker is the circuit breaker of a skill server or a remote agent.
type Breaker struct {
	Server   string    `json:"server"`
	Status   string    `json:"status"`              // closed, open or half_open
	Failures int       `json:"failures"`            // in a row
	Since    time.Time `json:"since,omitzero"`      // zero while closed
	Next     time.Time `json:"next_probe,omitzero"` // when the server is called again; zero: now
}

// SilentRequest asks on PlansSilent for open plans that no manager runs: opened before this
// router started and not claimed since, not claimed long after their dispatch, or released from
// approval. Plans that wait for approval are excluded. The reply also has the schedules that are
// due.
type SilentRequest struct{}

// SilentReply answers a SilentRequest, oldest first. Dreams are the last turns of sessions that
// are due for dreaming.
type SilentReply struct {
	Plans     []SilentPlan    `json:"plans"`
	Due       json.RawMessage `json:"due"`    // []catalog.Schedule; Next is the newest time that has come; the list may be incomplete
	Dreams    []SilentPlan    `json:"dreams"` // the last turns of sessions that are due for dreaming
	Abandoned []SilentPlan    `json:"left"`   // abandoned plans of MCP clients, to be ended
	Error     string          `json:"error,omitempty"`
	// Patched are running runs whose graph has changed since they began.
	Patched []SilentPlan `json:"patched,omitempty"`
	// Claimed are the open plans that a driver has claimed and that do not wait for approval. It
	// is set where drivers are separate processes, because a router does not see them die.
	Claimed []SilentPlan `json:"claimed,omitempty"`
}

// SilentPlan is what a gateway needs to dispatch a plan again: the plan.open that created it and
// the claims of its grant.
type SilentPlan struct {
	TurnRef            // without a grant
	Epoch    int       `json:"epoch"`  // for PlanDispatch.Epoch
	Roles    []string  `json:"roles"`  // of the first grant
	Client   string    `json:"client"` // act.client of the first grant: ClientOf(caller)
	OpenedAt time.Time `json:"opened_at"`
	Done     bool      `json:"done,omitempty"` // of a client: its step is done
	Run      bool      `json:"run,omitempty"`  // of a workflow
	Revision int       `json:"revision,omitempty"`
	Days     int       `json:"days,omitempty"` // of a run: number of days that it may go on without its user
}

// Calls of MCP clients are made in plans that the gateway opens for them. The manager begins and
// closes such a plan (ClientPlans); a process of the task role holds its key and signs each call
// (ClientCalls).

// ClientPlan requests that a plan be claimed and its task opened, or that it be closed. The key
// alone signs nothing: each request brings a grant of its own.
type ClientPlan struct {
	TurnRef
	Digest string `json:"digest,omitempty"` // intent_id of plan.open
	Close  bool   `json:"close,omitempty"`
}

// ClientPlanReply names the task and the process that has its key.
type ClientPlanReply struct {
	TaskID   string `json:"task_id,omitempty"`
	Instance string `json:"instance,omitempty"`
	Code     string `json:"code,omitempty"` // of a failure
	Reason   string `json:"reason,omitempty"`
}

// ClientCall asks a task to sign an intent, or, with End, to end.
type ClientCall struct {
	TurnRef
	TaskID  string          `json:"task_id"`
	Type    string          `json:"type,omitempty"`
	Args    json.RawMessage `json:"args,omitempty"`
	Request string          `json:"request,omitempty"` // of a skill.call: digest of the request id given by the client
	WaitMS  int64           `json:"wait_ms,omitempty"` // of a skill.call: the answer is IN_FLIGHT if it takes longer
	End     bool            `json:"end,omitempty"`
}

// ClientReply has the answer to the intent: Answer is *intents.Answer, which this package cannot
// import. Ended: the task accepts no new calls; it still answers calls that it accepted before.
type ClientReply[Answer any] struct {
	Answer Answer `json:"answer,omitempty"`
	Ended  bool   `json:"over,omitempty"`
	Code   string `json:"code,omitempty"` // of a failure: no intent was answered
	Reason string `json:"reason,omitempty"`
}

// LogsRequest opens a stream of logs.stream, or requests the next lines of an open one.
type LogsRequest struct {
	ID    string `json:"id"`              // of the stream
	After string `json:"after,omitempty"` // cursor of the last line that the follower has
	Now   bool   `json:"now,omitempty"`   // return the existing lines without waiting

	// Tenant is the caller's when opening; empty: the stream is open.
	Tenant string `json:"tenant,omitempty"`
	UserID string `json:"user_id,omitempty"`
	Client string `json:"client,omitempty"` // act.client of a grant of the caller
}

// LogsReply has lines, oldest first. It is sent once there are lines, or after a moment without
// any.
type LogsReply struct {
	Lines  []LogLine `json:"lines,omitempty"`
	Since  int64     `json:"since,omitempty"` // of an opened stream: Unix time of its intent
	Ended  bool      `json:"over,omitempty"`  // the run has ended, and these are its last lines
	Code   string    `json:"code,omitempty"`  // of a failure
	Reason string    `json:"reason,omitempty"`
}

// LogLine is a line (catalog.LogLine) with the cursor that follows it.
type LogLine struct {
	Line   json.RawMessage `json:"line"`
	Cursor string          `json:"cursor"`
}

// Attempt is one attempt at an intent.
type Attempt struct {
	IntentID string `json:"intent_id"`
	Number   int    `json:"attempt"`
}

// ReportRequest asks on Reports(executor) what became of an attempt that was dispatched. The process
// that has begun it answers at once; the others answer later, so that the first reply is the one that
// knows most. Recorded are attempts whose outcome is durable: their reports may be dropped.
type ReportRequest struct {
	Attempt
	Recorded []Attempt `json:"recorded,omitempty"`
	Cancel   bool      `json:"cancel,omitempty"` // nobody wants the attempt any more
}

// ReportReply answers a ReportRequest.
type ReportReply struct {
	State    string          `json:"state"`              // ReportRunning, ReportDone or ReportUnknown
	Report   json.RawMessage `json:"report,omitempty"`   // of ReportDone: an intents.Report
	Progress *Progress       `json:"progress,omitempty"` // of ReportRunning: the last that is known
}

// Progress is how far an intent is that is being carried out, as its skill server says. It is for
// display.
type Progress struct {
	Message  string  `json:"message,omitempty"` // one line
	Progress float64 `json:"progress,omitempty"`
	Total    float64 `json:"total,omitempty"` // 0: unknown
}

// States of an attempt at its executor. Unknown: it was not begun, or the process that began it has
// ended since.
const (
	ReportRunning = "running"
	ReportDone    = "done"
	ReportUnknown = "unknown"
)

// ProduceRequest asks for one intent that does what a sentence says, signed under the grant. It
// is not submitted.
type ProduceRequest struct {
	TurnRef        // without a plan
	Request string `json:"request"`
}

// ProduceReply has the signed intent, or explains in plain words why there is none.
type ProduceReply struct {
	Envelope json.RawMessage `json:"envelope,omitempty"` // signed
	IntentID string          `json:"intent_id,omitempty"`
	Type     string          `json:"type,omitempty"`
	Reason   string          `json:"reason,omitempty"`
	Code     string          `json:"code,omitempty"` // of a failure: no intent was produced
}

// PromptRequest asks on Prompts for the model's answer to a prompt of a chat front end.
type PromptRequest struct {
	TurnRef        // without a plan
	Prompt  string `json:"prompt"`
}

// PromptReply has the answer, or explains in plain words why there is none.
type PromptReply struct {
	Text   string          `json:"text,omitempty"`
	Usage  json.RawMessage `json:"usage,omitempty"` // []catalog.Usage
	Reason string          `json:"reason,omitempty"`
	Code   string          `json:"code,omitempty"` // of a failure: there is no answer
}
