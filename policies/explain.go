package policies

import (
	"context"

	"aob.dev/writ/intents"
)

// Explanation of a decision: the rules that fired with their METADATA, and their input.
type Explanation struct {
	Verdict     intents.Verdict      `json:"verdict"`
	Policy      string               `json:"policy_digest"`
	Fired       []RuleMatch          `json:"fired"`
	Approvers   []string             `json:"approvers,omitempty"`
	Obligations []intents.Obligation `json:"obligations,omitempty"`
	Input       map[string]any       `json:"input"`
}

// RuleMatch is a rule that denied or held an intent. A refusal that no rule made (IDDefault,
// IDEngine) has no METADATA.
type RuleMatch struct {
	Effect intents.Verdict `json:"effect"` // deny or hold
	Reason string          `json:"reason"`
	RuleInfo
}

// Explain judges an intent again and explains the decision.
func (e *Engine) Explain(ctx context.Context, q intents.Question) (Explanation, error) {
	input := Input(q.Envelope, q.Inputs)
	r, _, err := e.Judge(ctx, q)
	if err != nil {
		return Explanation{}, err
	}
	x := Explanation{Verdict: r.Verdict(), Policy: e.digest, Fired: []RuleMatch{}, Approvers: r.Approvers(), Obligations: r.Obligations, Input: input}
	add := func(effect intents.Verdict, rules []Rule) {
		for _, rule := range rules {
			info := e.rules[rule.ID]
			info.ID = rule.ID
			x.Fired = append(x.Fired, RuleMatch{effect, rule.Reason, info})
		}
	}
	add(intents.Deny, r.Deny)
	add(intents.Hold, r.Hold)
	return x, nil
}
