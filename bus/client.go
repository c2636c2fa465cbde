package bus

import (
	"encoding/json"
	"time"
)

// Calls of MCP clients are made in plans that the gateway opens for them. The manager begins and
// closes such a plan (ClientPlans); a process of the task role holds its key and signs each call
// (ClientCalls).

// ClientTurn is a client's plan with the grant of one request. The key alone signs nothing: each
// request brings a grant of its own.
type ClientTurn struct {
	Tenant    string `json:"tenant"`
	UserID    string `json:"user_id"`
	SessionID string `json:"session_id"`
	TurnID    string `json:"turn_id"`
	PlanID    string `json:"plan_id"`
	Grant     string `json:"grant"`
	TraceID   string `json:"trace_id,omitempty"`
}

// ClientPlan requests that a plan be claimed and its task opened, or that it be closed.
type ClientPlan struct {
	ClientTurn
	Digest string `json:"digest,omitempty"` // intent_id of plan.open
	Close  bool   `json:"close,omitempty"`
}

// ClientPlanReply names the task and the process that has its key.
type ClientPlanReply struct {
	TaskID   string    `json:"task_id,omitempty"`
	Instance string    `json:"instance,omitempty"`
	Until    time.Time `json:"until,omitzero"`
	Code     string    `json:"code,omitempty"` // of a failure
	Reason   string    `json:"reason,omitempty"`
}

// ClientCall asks a task to sign an intent, or, with End, to end.
type ClientCall struct {
	ClientTurn
	TaskID  string          `json:"task_id"`
	Type    string          `json:"type,omitempty"`
	Args    json.RawMessage `json:"args,omitempty"`
	Request string          `json:"request,omitempty"` // of a skill.call: digest of the request id given by the client
	End     bool            `json:"end,omitempty"`
}

// ClientReply has the answer to the intent (intents.Answer). Ended: the task accepts no new calls;
// it still answers calls that it accepted before.
type ClientReply struct {
	Answer json.RawMessage `json:"answer,omitempty"`
	Ended  bool            `json:"over,omitempty"`
	Code   string          `json:"code,omitempty"` // of a failure: no intent was answered
	Reason string          `json:"reason,omitempty"`
}
