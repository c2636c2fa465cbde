package catalog

import (
	"encoding/json"

	"aob.dev/writ/intents"
)

var approvalRows = []Row{
	{Type: "approval.ask", Title: "Ask people to approve something", Capability: "runs:ask", Signers: []intents.Role{intents.RoleTask}, Executor: ExecutorRouter, Effect: Idempotent},
	{Type: "hitl.approve", Title: "Approve a held order, reject it, ask for changes, or edit it", Capability: "runs:approve", Signers: []intents.Role{intents.RoleOperator, intents.RoleGateway}, Executor: ExecutorRouter, Effect: Idempotent},
}

// ApprovalAsk are the arguments of approval.ask: what people are asked.
type ApprovalAsk struct {
	Title     string    `json:"title"`
	Detail    string    `json:"detail,omitempty"`
	Items     []AskItem `json:"items,omitempty"`     // that each person can say yes to one by one
	Approvers []string  `json:"approvers,omitempty"` // one of these must say yes; nil: anybody who may approve
}

// AskItem is one item of a question to people.
type AskItem struct {
	ID   string `json:"id"`
	Text string `json:"text"`
}

// ApprovalAskResult is the result of approval.ask: who has said yes to what.
type ApprovalAskResult struct {
	Approved []ApprovedItems `json:"approved"`
}

// ApprovedItems are the items that one person has said yes to.
type ApprovedItems struct {
	UserID string   `json:"user_id"`
	At     string   `json:"at"`
	Items  []string `json:"items"`
}

// Approve are the arguments of hitl.approve: which held order, by its intent_id, which is the
// digest of what the person has seen, and that person's decision. Run and node, where they are
// given, say where it must wait.
type Approve struct {
	IntentID string          `json:"intent_id,omitempty"`
	RunID    string          `json:"run_id,omitempty"` // the plan's
	NodeID   string          `json:"node_id,omitempty"`
	Decision string          `json:"decision"`         // approve, reject, request_changes, edit
	Items    []string        `json:"items,omitzero"`   // of approval.ask: what the yes is for; nil: all, empty: refused
	Args     json.RawMessage `json:"args,omitempty"`   // edit: what is to be ordered in its place
	Reason   string          `json:"reason,omitempty"` // of reject and request_changes required
}

// The decisions of a person about a held order.
const (
	DecisionApprove        = "approve"
	DecisionReject         = "reject"
	DecisionRequestChanges = "request_changes"
	DecisionEdit           = "edit"
)

// ApproveResult is the result of hitl.approve: where the held order stands now.
type ApproveResult struct {
	IntentID string       `json:"intent_id"`         // of the held order
	State    string       `json:"state"`             // held, released, ended
	Code     intents.Code `json:"code,omitempty"`    // ended: its outcome's
	Reason   string       `json:"reason,omitempty"`  // ended
	Approved []string     `json:"approved"`          // people whose approval counts
	Missing  []string     `json:"missing,omitempty"` // held: rules that need more approvals
}

// The states of a held order after an approval.
const (
	ApprovalHeld     = "held"
	ApprovalReleased = "released" // it goes on
	ApprovalEnded    = "ended"    // it has its outcome
)

// Changed is the result of a held order that ended as CHANGED: what its next task orders.
type Changed struct {
	Args json.RawMessage `json:"args"`
}

// ChangesRequested is the result of a held order of which somebody has requested changes.
type ChangesRequested struct {
	By      string `json:"by"`
	Changes string `json:"changes"`
}
