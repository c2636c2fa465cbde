// Package consoleapi is the console API that a process that follows the record serves beside the
// HTTP interface: intents as they were signed, versions of skills, revisions of agents,
// explanations, bundles. Package router/httpapi checks the grant of a request; the
// console reads with the person's key.
package consoleapi

import (
	"encoding/json"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/health"
)

// Path is the prefix under which routers serve it. It is no part of the public interface.
const Path = "/console-api/"

// Signed is an intent as it was signed, with what people decided about it.
type Signed struct {
	KID     string          `json:"kid"`  // of its signer
	Role    string          `json:"role"` // of that key
	User    string          `json:"user_id"`
	Key     string          `json:"key,omitempty"` // with which the user came: the id of an API key, or the name of a sign-in
	Type    string          `json:"type"`
	Skill   string          `json:"skill,omitempty"` // that it calls
	Args    json.RawMessage `json:"args,omitempty"`  // as they were signed; empty: they were erased, or are masked
	Masked  bool            `json:"masked,omitempty"`
	Context intents.Context `json:"context"`
	At      time.Time       `json:"at"`
	Ended   time.Time       `json:"ended,omitzero"`
	Decided []Decided       `json:"decided,omitempty"` // oldest first
	// Standing is the call with which people approved this one, too; empty: none.
	Standing string `json:"standing,omitempty"`
}

// Decided is what a person decided about a held intent. Items and Reason are empty if the intent is masked.
type Decided struct {
	IntentID string    `json:"intent_id"` // of the hitl.approve
	User     string    `json:"user_id"`
	Key      string    `json:"key,omitempty"`
	At       time.Time `json:"at"`
	Decision string    `json:"decision"` // empty: it was erased
	Items    []string  `json:"items,omitempty"`
	Reason   string    `json:"reason,omitempty"`
}

// Use is what an intent of a plan reports that models were used.
type Use struct {
	TaskID string   `json:"task_id,omitempty"` // that ended by it; empty: it plans, or closes the plan
	Tokens int      `json:"tokens"`
	Cost   *float64 `json:"cost,omitempty"` // absent: a model has no price
}

// Lines are the first lines in the log of a plan or of a step.
type Lines struct {
	Lines []catalog.LogLine `json:"lines"`
	More  bool              `json:"more,omitempty"`
}

// MaxLines bounds Lines.
const MaxLines = 100

// Skill is a tool with its approval in a tenant.
type Skill struct {
	Name   string       `json:"name"`
	Pin    *intents.Pin `json:"pin,omitempty"`    // nil: no version is approved
	Now    *Version     `json:"now,omitempty"`    // nil: no server declares it
	Before *Version     `json:"before,omitempty"` // the approved version, if it was seen here and differs
}

// Version of a skill as a server declares it.
type Version struct {
	Server      string          `json:"server"`
	Digest      string          `json:"digest"`
	Effect      catalog.Effect  `json:"effect"`                 // default of a first approval
	Claim       catalog.Effect  `json:"claim"`                  // as the server's hints claim
	Destructive string          `json:"destructive,omitempty"`  // default of an approval
	Trusted     bool            `json:"trusted,omitempty"`      // same
	OpenWorld   string          `json:"open_world,omitempty"`   // same
	Text        string          `json:"text"`                   // the declaration, one line for each property
	InputSchema json.RawMessage `json:"input_schema,omitempty"` // as included in an approval
}

// Changed reports whether a version waits for approval.
func (s Skill) Changed() bool { return s.Now != nil && (s.Pin == nil || s.Pin.Digest != s.Now.Digest) }

// Revision of the agents of a tenant.
type Revision struct {
	Tenant string            `json:"tenant"` // owner: the tenant, or system for all
	Digest string            `json:"digest"`
	Files  map[string]string `json:"files"`            // texts by path; nil: the visitor may not see them
	Before map[string]string `json:"before,omitempty"` // of the revision before; nil: there was none
}

// Health is the state of the process. It is shown with figures of package monitor for the
// tenant's last hour, if the caller may see the whole tenant.
type Health struct {
	Stores     map[string]string  `json:"stores"`
	Conditions []health.Condition `json:"conditions"`
}
