// Package office is what a process that follows the record shows the console beside the HTTP
// interface: orders as they were signed, versions of skills, revisions of agents, explanations,
// backtests, bundles. Package router/httpapi asks whose grant a request carries; the console
// reads it with the person's key.
package office

import (
	"encoding/json"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/health"
)

// Path is below which routers serve it. It is no part of the public interface.
const Path = "/office/"

// Sealed is an order as it was signed. Args are empty if they were erased.
type Sealed struct {
	KID  string          `json:"kid"`  // of its signer
	Role string          `json:"role"` // of that key
	User string          `json:"user_id"`
	Type string          `json:"type"`
	Args json.RawMessage `json:"args,omitempty"` // as they were signed
}

// Skill is a tool with its approval in a tenant.
type Skill struct {
	Name   string       `json:"name"`
	Pin    *intents.Pin `json:"pin,omitempty"`    // nil: no version is approved
	Now    *Version     `json:"now,omitempty"`    // nil: no server declares it
	Before *Version     `json:"before,omitempty"` // the approved version, if it was seen here and is another one
}

// Version of a skill as a server declares it.
type Version struct {
	Server      string          `json:"server"`
	Digest      string          `json:"digest"`
	Effect      catalog.Effect  `json:"effect"`                 // as it is approved at first sight
	Claim       catalog.Effect  `json:"claim"`                  // as hints claim
	Destructive string          `json:"destructive,omitempty"`  // as it is approved unless somebody says otherwise
	Text        string          `json:"text"`                   // the declaration, one line for each property
	InputSchema json.RawMessage `json:"input_schema,omitempty"` // as an approval of it carries it
}

// Changed says whether a version waits for an approval.
func (s Skill) Changed() bool { return s.Now != nil && (s.Pin == nil || s.Pin.Digest != s.Now.Digest) }

// Revision of the agents of a tenant.
type Revision struct {
	Tenant string            `json:"tenant"` // whose it is: the tenant's, or system's for all
	Digest string            `json:"digest"`
	Files  map[string]string `json:"files"`            // texts by path; nil: they are not for the visitor
	Before map[string]string `json:"before,omitempty"` // of the revision before; nil: there was none
}

// Trial is a file of the policy in force with another text.
type Trial struct {
	File string `json:"file"`
	Text string `json:"text"`
}

// Backtest is what a changed policy would have decided otherwise.
type Backtest struct {
	Records      int64   `json:"records"`
	Unreplayable int64   `json:"unreplayable"`
	Flipped      int64   `json:"flipped"`
	Policy       string  `json:"policy"` // digest of the changed tree
	Groups       []Flips `json:"groups"`
	Refused      string  `json:"refused,omitempty"` // the tree is none: why; then nothing else is there
}

// Flips are orders that one rule decides otherwise.
type Flips struct {
	Rule    string          `json:"rule"`
	Before  intents.Verdict `json:"before"`
	After   intents.Verdict `json:"after"`
	Count   int64           `json:"count"`
	Samples []string        `json:"samples"`
}

// Health is the state of the process. Beside it stand figures, those of package internal/monitor
// of the tenant's last hour, for who may see the whole tenant.
type Health struct {
	Stores     map[string]string  `json:"stores"`
	Conditions []health.Condition `json:"conditions"`
}
