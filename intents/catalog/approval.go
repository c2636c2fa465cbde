package catalog

import (
	"encoding/json"

	"aob.dev/writ/intents"
)

var approvalRows = []Row{
	{Type: "approval.ask", Title: "Ask people to approve something", Capability: "runs:ask", Signers: []intents.Role{intents.RoleTask}, Executor: ExecutorRouter, Effect: Idempotent},
	{Type: "hitl.approve", Title: "Approve a held intent, reject it, ask for changes, or edit it", Capability: "runs:approve", Signers: []intents.Role{intents.RoleOperator, intents.RoleGateway}, Executor: ExecutorRouter, Effect: Idempotent},
}

// ApprovalAsk are the arguments of approval.ask: the question to people.
type ApprovalAsk struct {
	Title     string    `json:"title"`
	Detail    string    `json:"detail,omitempty"`
	Items     []AskItem `json:"items,omitempty"`     // that each person can approve separately
	Approvers []string  `json:"approvers,omitempty"` // one of these must approve; nil: anybody who may approve
}

// AskItem is one item of a question to people.
type AskItem struct {
	ID   string `json:"id"`
	Text string `json:"text"`
}

// ApprovalAskResult is the result of approval.ask: who approved which items.
type ApprovalAskResult struct {
	Approved []ApprovedItems `json:"approved"`
}

// ApprovedItems are the items that one person approved.
type ApprovedItems struct {
	UserID string   `json:"user_id"`
	At     string   `json:"at"`
	Items  []string `json:"items"`
}

// Approve are the arguments of hitl.approve: which held intent, by its intent_id, which is the
// digest of what was shown to the person, and the person's decision. Run and node, if
// present, say where it must wait.
type Approve struct {
	IntentID string          `json:"intent_id,omitempty"`
	RunID    string          `json:"run_id,omitempty"` // the plan's
	NodeID   string          `json:"node_id,omitempty"`
	Decision string          `json:"decision"`         // approve, reject, request_changes, edit
	Items    []string        `json:"items,omitzero"`   // of approval.ask: what the yes is for; nil: all, empty: refused
	Args     json.RawMessage `json:"args,omitempty"`   // edit: the arguments to use instead
	Reason   string          `json:"reason,omitempty"` // of reject and request_changes required
	Also     *Also           `json:"also,omitempty"`   // approve: later calls, too
}

// Also makes a yes to a call of a skill count for later calls of it in the same session.
type Also struct {
	Uses      int      `json:"uses"`           // how many
	WithinSec int      `json:"within_sec"`     // at most MaxAlso
	Free      []string `json:"free,omitempty"` // members of the input that may differ; all others stay as they are
}

// MaxAlso is how long such a yes counts at most, in seconds.
const MaxAlso = 8 * 60 * 60

// The decisions of a person about a held intent.
const (
	DecisionApprove        = "approve"
	DecisionReject         = "reject"
	DecisionRequestChanges = "request_changes"
	DecisionEdit           = "edit"
	DecisionWithdraw       = "withdraw" // of a standing approval
)

// ApproveResult is the result of hitl.approve: the state of the held intent now.
type ApproveResult struct {
	IntentID string       `json:"intent_id"`         // of the held intent
	State    string       `json:"state"`             // held, released, ended
	Code     intents.Code `json:"code,omitempty"`    // ended: its outcome's
	Reason   string       `json:"reason,omitempty"`  // ended
	Approved []string     `json:"approved"`          // people whose approval counts
	Missing  []string     `json:"missing,omitempty"` // held: rules that need more approvals
}

// The states of a held intent after an approval.
const (
	ApprovalPending  = "held"
	ApprovalReleased = "released" // it continues
	ApprovalEnded    = "ended"    // it has its outcome
)

// ChangeResult is the result of a held intent that ended as CHANGED: the intent of its next task.
type ChangeResult struct {
	Args json.RawMessage `json:"args"`
}

// ChangesRequested is the result of a held intent for which somebody requested changes.
type ChangesRequested struct {
	By      string `json:"by"`
	Changes string `json:"changes"`
}
