package intents

import (
	"encoding/json"

	"aob.dev/writ/schemas"
)

// Status of an outcome.
type Status string

// How an intent ended.
const (
	Done               Status = "done"
	Failed             Status = "failed"
	StatusIndetermined Status = "indeterminate"

	// Unstarted is the status of a report alone: the executor has begun nothing, and the router
	// issues another ticket.
	Unstarted Status = "unstarted"
)

// ReportedEvent is a schema-checked member for events: sizes, lock waits, a
// script's hash, rows. Events never contain values of the data.
type ReportedEvent struct {
	Event   string          `json:"event"` // event type, such as "skill.called"
	Payload json.RawMessage `json:"payload"`
}

// Outcome is how an intent ended; it is the record's part "outcome".
type Outcome struct {
	Target    int64           `json:"of"`
	Attempt   int             `json:"attempt"`
	Status    Status          `json:"status"`
	Code      Code            `json:"code"`
	Reason    string          `json:"reason,omitempty"`
	Retryable bool            `json:"retryable,omitempty"`
	Result    json.RawMessage `json:"result,omitempty"`
	Events    []ReportedEvent `json:"facts,omitempty"`
	// Transport of a skill.call; nil: nothing is known of its server.
	Transport *Transport `json:"transport,omitempty"`
	MS        int64      `json:"duration_ms"`
	// Sources that the plan has read by it, and that were not known of the plan before.
	Sources []Source `json:"sources,omitempty"`
	// Lines are the record's part "lines", which answers leave out.
	Lines []Line `json:"-"`
	// Outputs are what later nodes of a run read of a node's intent; nil: the intent is of no node.
	Outputs json.RawMessage `json:"outputs,omitempty"`
}

// Answer is what a submitter gets: the decision, and as far as it is known the
// outcome. Receipt is a compact JWS (see Receipt).
type Answer struct {
	IntentID string    `json:"intent_id"`
	Position *int64    `json:"position,omitempty"` // absent: no record was made
	TraceID  string    `json:"trace_id,omitempty"`
	Decision *Decision `json:"decision,omitempty"`
	Outcome  *Outcome  `json:"outcome,omitempty"`
	Replayed bool      `json:"replayed,omitempty"`
	Receipt  string    `json:"receipt,omitempty"`
	// Duplicate: it was submitted before; the answer is about that submission.
	Duplicate bool   `json:"-"`
	Approval  string `json:"approval,omitempty"` // of a held intent: the path at which its approval is followed

	// Details is the part of the answer to a transition of a plan that no record has (catalog.PlanDetails).
	Details json.RawMessage `json:"told,omitempty"`

	// Refused intents.
	Code    Code   `json:"code"`
	Pointer string `json:"pointer,omitempty"`
	Reason  string `json:"reason,omitempty"`
	Hint    string `json:"hint,omitempty"`

	Violations []schemas.Violation `json:"violations,omitempty"`      // of SCHEMA_INVALID: all of them
	RetryAfter int                 `json:"retry_after_sec,omitempty"` // of RATE_LIMITED, and of a call whose skill server is not called for now
	PlanID     string              `json:"plan_id,omitempty"`         // of SESSION_BUSY: the plan that runs in the session
}
