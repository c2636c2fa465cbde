package intents

import (
	"errors"
	"math"
	"slices"
	"strings"
	"time"

	"aob.dev/writ/schemas"
)

// Refusal is why an intent is refused: one code of the closed set, the place, and what to do. Reason never contains values of the intent or of other tenants. It is
// the error of Parse, Verify and the router's stages.
type Refusal struct { //nolint:errname // the field says refusal
	Code      Code     `json:"code"`
	Pointer   string   `json:"pointer,omitempty"` // JSON Pointer into the envelope, where one member is at fault
	Reason    string   `json:"reason"`
	PolicyIDs []string `json:"policy_ids,omitempty"`
	Retryable bool     `json:"retryable"`
	Hint      string   `json:"hint,omitempty"`

	PlanID     string              `json:"-"` // of SESSION_BUSY: the plan that runs in the session
	RetryAfter time.Duration       `json:"-"` // when it may succeed; 0: not known
	Violations []schemas.Violation `json:"-"` // of a schema: all of them
}

// Seconds until it may succeed, rounded up; 0: not known.
func (r *Refusal) Seconds() int { return int(math.Ceil(r.RetryAfter.Seconds())) }

func (r *Refusal) Error() string {
	if r.Pointer != "" {
		return string(r.Code) + " at " + r.Pointer + ": " + r.Reason
	}
	return string(r.Code) + ": " + r.Reason
}

// Refuse makes a refusal with the code's hint.
func Refuse(code Code, pointer, reason string) *Refusal {
	i := code.Info()
	return &Refusal{Code: code, Pointer: pointer, Reason: reason, Retryable: i.Retryable, Hint: i.Hint}
}

// CodeOf is the code of an error: its refusal's, else Internal; OK for nil.
func CodeOf(err error) Code {
	if err == nil {
		return OK
	}
	var r *Refusal
	if errors.As(err, &r) {
		return r.Code
	}
	return Internal
}

// Verdict of a decision.
type Verdict string

// The verdicts of a decision.
const (
	Allow Verdict = "allow"
	Deny  Verdict = "deny"
	Hold  Verdict = "hold"
)

// Obligation is a duty that a policy attaches to an allowed intent. Name is one
// of mask, max_bytes, ttl_max, driver, notify, redact; an executor refuses any other.
type Obligation struct {
	Name  string `json:"name"`
	Value any    `json:"value"`
}

// Decision is the router's decision about an intent; it is the record's part
// "decision" and reproducible from the record alone.
type Decision struct {
	Verdict   Verdict  `json:"verdict"`
	Code      Code     `json:"code"` // OK for allow
	Pointer   string   `json:"pointer,omitempty"`
	Reason    string   `json:"reason,omitempty"`
	PolicyIDs []string `json:"policy_ids,omitempty"` // ids of the rules that fired
	Retryable bool     `json:"retryable,omitempty"`
	Hint      string   `json:"hint,omitempty"`

	Obligations []Obligation `json:"obligations,omitempty"`
	Approvers   []string     `json:"approvers,omitempty"` // hold: who may approve
	Hold        *HoldTerms   `json:"hold,omitempty"`      // hold: what it waits for

	Batch *BatchRef `json:"batch,omitempty"` // accepted together with others

	IntentID     string `json:"intent_id"`
	PolicyDigest string `json:"policy_digest"`
	Catalog      string `json:"catalog_digest"`
	Directory    int64  `json:"directory"` // position of the last record applied to the directory
	Effect       string `json:"effect,omitempty"`
	Executor     string `json:"executor,omitempty"`

	// Key is the hex of the 128 bits that represent the idempotency key of an accepted
	// intent. It is for the record alone: what the record omits can be changed unnoticed.
	Key string `json:"key,omitempty"`
}

// Masks reports whether a policy hides parts of the intent or of its result from people.
func (d *Decision) Masks() bool {
	return d != nil && (d.Hold.Masks() || masks(d.Obligations))
}

// ReadDecision reads the part "decision" of a record.
func ReadDecision(part []byte) (Decision, error) {
	return ReadPart(part, func(c *Cursor, d *Decision) {
		c.Members("verdict", (*string)(&d.Verdict), "code", (*string)(&d.Code), "intent_id", &d.IntentID,
			"policy_digest", &d.PolicyDigest, "catalog_digest", &d.Catalog, "directory", &d.Directory,
			"effect", &d.Effect, "executor", &d.Executor, "key", &d.Key)
	})
}

// RuleNobody denies what the tenant's data hold where nobody could approve it. TooFewApprove begins
// the reason of any other rule that denies for that.
const (
	RuleNobody    = "writ.approval.nobody"
	TooFewApprove = "it waits for people, and too few of the tenant's may approve it: "
)

// LacksApprovers reports whether an intent was denied because nobody could approve it.
func (d *Decision) LacksApprovers() bool {
	return d != nil && d.Verdict == Deny && (slices.Contains(d.PolicyIDs, RuleNobody) || strings.HasPrefix(d.Reason, TooFewApprove))
}
