package console

import (
	"context"
	"encoding/json"
	"io"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

// Office has what the command line reads in the data directory and the HTTP interface does
// not have. It asks nobody whether the person may: the console has asked the API before.
type Office interface {
	// Sealed is the order at a position of the record, as it was signed.
	Sealed(ctx context.Context, position int64) (Sealed, error)
	// Skills are the tools that servers declare for a tenant, with their approvals.
	Skills(tenant string) ([]Skill, error)
	// Agents are the files of a tenant's agents in force and of the revision before.
	Agents(ctx context.Context, tenant string) ([]Revision, error)
	// Policy is the tree in force: texts by name.
	Policy() map[string]string
	// Explain decides a recorded order anew, by the policy of then, and says why.
	Explain(ctx context.Context, id string) (json.RawMessage, error)
	// Backtest decides the orders of a tenant again with one file of the tree changed.
	Backtest(ctx context.Context, tenant, file, text string) (Backtest, error)
	// Bundle writes the record of a tenant, complete, without what policies mask.
	Bundle(ctx context.Context, w io.Writer, tenant string) error
	// Witnesses that cosign checkpoints, by name.
	Witnesses() []string
}

// Sealed is an order as it was signed. Args are empty if they were erased.
type Sealed struct {
	KID  string // of its signer
	Role string // of that key
	User string // for whom
	Type string
	Args json.RawMessage // as they were signed
}

// Skill is a tool with its approval in a tenant.
type Skill struct {
	Name   string
	Pin    *intents.Pin // nil: no version is approved
	Now    *Version     // nil: no server declares it
	Before *Version     // the approved version, if it was seen here and is another one
}

// Version of a skill as a server declares it.
type Version struct {
	Server, Digest string
	Effect         catalog.Effect  // as hints claim
	Text           string          // the declaration, one line for each property
	InputSchema    json.RawMessage // as an approval of it carries it
}

// Changed says whether a version waits for an approval.
func (s Skill) Changed() bool { return s.Now != nil && (s.Pin == nil || s.Pin.Digest != s.Now.Digest) }

// Revision of the agents of a tenant.
type Revision struct {
	Tenant, Digest string            // whose it is: the tenant's, or system's for all
	Files          map[string]string // texts by path
	Before         map[string]string // of the revision before; nil: there was none
}

// Backtest is what a changed policy would have decided otherwise.
type Backtest struct {
	Records, Unreplayable, Flipped int64
	Policy                         string // digest of the changed tree
	Groups                         []Flips
	Refused                        string // the tree is none: why; then nothing else is there
}

// Flips are orders that one rule decides otherwise.
type Flips struct {
	Rule          string
	Before, After intents.Verdict
	Count         int64
	Samples       []string
}
