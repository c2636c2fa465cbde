package intents

import (
	"encoding/json"
	"time"
)

// Ticket is the router's word to an executor that one order is to be carried
// out now (DESIGN §9). Claims of a JWS of type writ-ticket+jws.
type Ticket struct {
	Issuer       string          `json:"iss"`
	IntentID     string          `json:"intent_id"`
	Type         string          `json:"type"`
	Executor     string          `json:"executor"`
	Actor        Principal       `json:"actor"`
	Position     int64           `json:"position"`
	Attempt      int             `json:"attempt"`
	Deadline     time.Time       `json:"deadline"`
	Obligations  []Obligation    `json:"obligations,omitempty"`
	PolicyDigest string          `json:"policy_digest"`
	Scope        *TaskScopeClaim `json:"scope,omitempty"`
	Pins         []Pin           `json:"pins,omitempty"`
	Inputs       []Input         `json:"inputs,omitempty"`
}

// Principal is who an order acts for, as the grant says (C-32).
type Principal struct {
	UserID  string   `json:"user_id"`
	Tenant  string   `json:"tenant"`
	Roles   []string `json:"roles,omitempty"`
	Session string   `json:"session_id,omitempty"`
}

// TaskScopeClaim is what the task of an order may touch.
type TaskScopeClaim struct {
	Task       string          `json:"task_id"`
	Plan       string          `json:"plan_id"`
	Revision   int             `json:"revision"`
	Step       int             `json:"step"`
	Skills     []string        `json:"skills"`
	ReturnSpec json.RawMessage `json:"return_spec,omitempty"` // {shape, reason}
	InputKey   string          `json:"input_key,omitempty"`   // the memory key that it may read
	Deadline   time.Time       `json:"deadline"`
}

// Pin is an approved skill manifest.
type Pin struct {
	Skill  string `json:"skill"`
	Digest string `json:"digest"`
	Effect string `json:"effect"`
}

// Input is an argument that the router resolved from a member "from": the value
// itself, or a reference that the executor opens in Blobs.
type Input struct {
	Pointer string `json:"pointer"` // where the data belongs in args, such as /data
	Ref     string `json:"ref,omitempty"`
	Value   []byte `json:"value,omitempty"` // the JSON text as it is, base64: signing must not change its numbers
	SHA256  string `json:"sha256"`
	Size    int64  `json:"size_bytes,omitempty"`
}

// IssueTicket signs a ticket with the router's key.
func IssueTicket(key Signer, t Ticket) (string, error) { return SignCompact(key, TypTicket, t) }

// OpenTicket verifies a ticket. The deadline is not judged here.
func OpenTicket(token string, keys Keys) (Ticket, error) {
	var t Ticket
	key, err := OpenCompact(token, TypTicket, keys, &t)
	if err != nil {
		return Ticket{}, err
	}
	if key.Role != RoleRouter {
		return Ticket{}, Refuse(KeyRole, "", "ticket is not signed by a router")
	}
	return t, nil
}
