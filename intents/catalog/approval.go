package catalog

import "aob.dev/writ/intents"

var approvalRows = []Row{
	{Type: "hitl.approve", Title: "Approve a held order, reject it, or ask for changes", Capability: "runs:approve", Signers: []intents.Role{intents.RoleOperator, intents.RoleGateway}, Executor: ExecutorRouter, Effect: Idempotent},
}

// Approve are the arguments of hitl.approve: which held order, by its intent_id
// or as a node of a run, and the decision of one person.
type Approve struct {
	IntentID string `json:"intent_id,omitempty"`
	RunID    string `json:"run_id,omitempty"`
	NodeID   string `json:"node_id,omitempty"`
	Decision string `json:"decision"`         // approve, reject, request_changes
	Reason   string `json:"reason,omitempty"` // required unless decision is approve
}

// The decisions of a person about a held order.
const (
	DecisionApprove        = "approve"
	DecisionReject         = "reject"
	DecisionRequestChanges = "request_changes"
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
