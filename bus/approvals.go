package bus

import "encoding/json"

// ApprovalsRequest asks for pending approvals, newest first: those that a user may decide, and the
// user's own.
type ApprovalsRequest struct {
	IntentID string `json:"intent_id,omitempty"` // only this one
	Mine     bool   `json:"mine,omitempty"`      // only those that the user requested
	Type     string `json:"type,omitempty"`      // only of this intent type
	Limit    int    `json:"limit,omitempty"`     // 1 to 100; 0: 20
	After    string `json:"after,omitempty"`     // a cursor
}

// ApprovalsReply is a page of pending approvals.
type ApprovalsReply struct {
	Approvals []PendingApproval `json:"approvals"`
	Cursor    string            `json:"cursor,omitempty"` // of the next page
}

// PendingApproval is an intent that waits for approval, as shown to approvers.
type PendingApproval struct {
	IntentID     string          `json:"intent_id"`
	Position     int64           `json:"position"`
	TenantID     string          `json:"tenant_id"`
	UserID       string          `json:"user_id"` // requester
	Type         string          `json:"type"`
	Args         json.RawMessage `json:"args"` // without the members that its rules mask
	PlanID       string          `json:"plan_id,omitempty"`
	Step         int             `json:"step,omitempty"`
	Reason       string          `json:"reason"`
	Rules        []PendingRule   `json:"rules"`
	Approved     []Vote          `json:"approved"` // votes so far that count
	PendingSince string          `json:"held_at"`  // RFC 3339
	Deadline     string          `json:"deadline"` // RFC 3339
	MayDecide    bool            `json:"may_decide"`
	Mine         bool            `json:"mine"`
	URL          string          `json:"url"`
}

// PendingRule is a rule that requires approval of an intent, with what is still missing.
type PendingRule struct {
	ID        string   `json:"id"`
	Reason    string   `json:"reason"`
	Approvers []string `json:"approvers,omitempty"`
	Roles     []string `json:"roles,omitempty"`
	Count     int      `json:"count"`
	FourEyes  bool     `json:"four_eyes"`
	Satisfied bool     `json:"satisfied"`
}

// Vote is one person's approval.
type Vote struct {
	UserID string `json:"user_id"`
	At     string `json:"at"` // RFC 3339
}

// ApprovalURL returns the path at which the pending approval of an intent is followed.
func ApprovalURL(intentID string) string { return "/v1/approvals/" + intentID }
