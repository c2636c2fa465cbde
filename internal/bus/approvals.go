package bus

import "encoding/json"

// ApprovalsRequest asks on DirectoryApprovals for held orders, newest first: those
// that the grant's user may decide, and the user's own.
type ApprovalsRequest struct {
	Grant    string `json:"grant"`               // compact JWS
	IntentID string `json:"intent_id,omitempty"` // only this one
	Mine     bool   `json:"mine,omitempty"`      // only those that the user asked for
	Type     string `json:"type,omitempty"`      // only of this intent type
	Limit    int    `json:"limit,omitempty"`     // 1 to 100; 0: 20
	After    string `json:"after,omitempty"`     // a cursor
}

// ApprovalsReply is a page of the inbox. Code says why there is none.
type ApprovalsReply struct {
	Approvals []HeldOrder `json:"approvals"`
	Cursor    string      `json:"cursor,omitempty"` // of the next page
	Code      string      `json:"code,omitempty"`
	Reason    string      `json:"reason,omitempty"`
}

// HeldOrder is an order that waits for people, as they are shown it.
type HeldOrder struct {
	IntentID  string          `json:"intent_id"`
	Position  int64           `json:"position"`
	TenantID  string          `json:"tenant_id"`
	UserID    string          `json:"user_id"` // who asked
	Type      string          `json:"type"`
	Args      json.RawMessage `json:"args"` // without what its rules mask
	PlanID    string          `json:"plan_id,omitempty"`
	Step      int             `json:"step,omitempty"`
	Reason    string          `json:"reason"`
	Rules     []HeldRule      `json:"rules"`
	Approved  []Approved      `json:"approved"` // so far, those that count
	HeldAt    string          `json:"held_at"`  // RFC 3339
	Deadline  string          `json:"deadline"` // RFC 3339
	MayDecide bool            `json:"may_decide"`
	Mine      bool            `json:"mine"`
	URL       string          `json:"url"`
}

// HeldRule is a rule that holds an order and what it still wants.
type HeldRule struct {
	ID        string   `json:"id"`
	Reason    string   `json:"reason"`
	Approvers []string `json:"approvers,omitempty"`
	Roles     []string `json:"roles,omitempty"`
	Count     int      `json:"count"`
	FourEyes  bool     `json:"four_eyes"`
	Satisfied bool     `json:"satisfied"`
}

// Approved is one person's yes.
type Approved struct {
	UserID string `json:"user_id"`
	At     string `json:"at"` // RFC 3339
}

// ApprovalURL is the path at which the approval of a held order is followed.
func ApprovalURL(intentID string) string { return "/v1/approvals/" + intentID }
