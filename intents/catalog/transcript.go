package catalog

import (
	"encoding/json"

	"aob.dev/writ/intents"
)

// PlanDetails is the part of a plan that the answers of plan.claim, step and step.finish have beside their
// recorded result.
type PlanDetails struct {
	Calls []CallSummary `json:"calls,omitempty"` // of steps that are not done
	// Tokens that earlier tasks of the step have used; of step alone.
	Tokens        int          `json:"tokens,omitempty"`
	IntentHistory []PastIntent `json:"facts,omitempty"` // intents with effects of steps that are not done, with arguments

	// Of a run: what its driver can do now, and for step what the task signs.
	Next   []NextNode  `json:"next,omitempty"`
	Intent *NodeIntent `json:"intent,omitempty"`
	// DryRun: the intent is decided and refused; its node is done if it would have been allowed.
	DryRun bool      `json:"dry_run,omitempty"`
	Kept   *KeptNode `json:"kept,omitempty"` // of a replay: it signs nothing but its end

	// Transient texts that came with plan.open; of plan.claim alone. TransientLost: they are lost, so
	// the plan cannot be driven as its user wanted.
	Transient     *Transient `json:"transient,omitempty"`
	TransientLost bool       `json:"transient_lost,omitempty"`

	// Agent is the asked agent, as agent.get would deliver it to its task; for agent.ask only.
	Agent *AgentGetResult `json:"agent,omitempty"`
}

// SkillCallDetails is what the answer of a skill.call has beside its recorded result.
type SkillCallDetails struct {
	Images []intents.Image `json:"images"`
}

// CallSummary is an intent that an agent's call made.
type CallSummary struct {
	Step       int    `json:"step"`
	IntentID   string `json:"intent_id"`
	Occurrence int    `json:"occurrence,omitempty"`
	Call       string `json:"call"` // "<reply>.<index>"
	Type       string `json:"type"`
	Status     string `json:"status"` // open, held, done, failed, indeterminate; of an ask that of its task (AskInterrupted …)
}

// TranscriptGet are the arguments of transcript.get.
type TranscriptGet struct {
	IntentIDs []string `json:"intent_ids"` // 1 to 20
}

// TranscriptGetResult is the result of transcript.get. Its record has the digest alone.
type TranscriptGetResult struct {
	Calls  []TranscriptCall `json:"calls,omitempty"`
	SHA256 string           `json:"sha256,omitempty"` // of the result, in the record
}

// TranscriptCall is a call with its request and its result.
type TranscriptCall struct {
	CallSummary
	Args   json.RawMessage `json:"args"`
	Code   intents.Code    `json:"code,omitempty"` // once it has ended
	Reason string          `json:"reason,omitempty"`
	Result json.RawMessage `json:"result,omitempty"`
}
