package bus

import (
	"encoding/json"
	"time"
)

// The gateway has the calls of MCP clients made in plans that it has opened for them: the
// manager begins and closes such a plan (ClientPlans), and a process of the task role holds
// its key and seals each call (ClientCalls).

// ClientTurn is a client's plan and a grant for what is asked. The key seals nothing by
// itself: each request brings a grant of its own.
type ClientTurn struct {
	Tenant    string `json:"tenant"`
	UserID    string `json:"user_id"`
	SessionID string `json:"session_id"`
	TurnID    string `json:"turn_id"`
	PlanID    string `json:"plan_id"`
	Grant     string `json:"grant"`
	TraceID   string `json:"trace_id,omitempty"`
}

// ClientPlan asks to claim a plan and open its task, or to close it.
type ClientPlan struct {
	ClientTurn
	Digest string `json:"digest,omitempty"` // intent_id of plan.open
	Close  bool   `json:"close,omitempty"`
}

// ClientPlanReply names the task, and the process that has its key.
type ClientPlanReply struct {
	TaskID   string    `json:"task_id,omitempty"`
	Instance string    `json:"instance,omitempty"`
	Until    time.Time `json:"until,omitzero"`
	Code     string    `json:"code,omitempty"` // of a failure
	Reason   string    `json:"reason,omitempty"`
}

// ClientCall asks a task to seal an order, or with End to end.
type ClientCall struct {
	ClientTurn
	TaskID  string          `json:"task_id"`
	Type    string          `json:"type,omitempty"`
	Args    json.RawMessage `json:"args,omitempty"`
	Request string          `json:"request,omitempty"` // of a skill.call: digest of the client's id of it
	End     bool            `json:"end,omitempty"`
}

// ClientReply has the answer of the order (intents.Answer). Over: the task takes no call any
// more that it has not taken before.
type ClientReply struct {
	Answer json.RawMessage `json:"answer,omitempty"`
	Over   bool            `json:"over,omitempty"`
	Code   string          `json:"code,omitempty"` // of a failure: no order was answered
	Reason string          `json:"reason,omitempty"`
}
