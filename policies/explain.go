package policies

import (
	"context"

	"aob.dev/writ/intents"
)

// Explanation of a decision: the rules that fired with their METADATA, and the
// input that they fired over.
type Explanation struct {
	Verdict     intents.Verdict      `json:"verdict"`
	Policy      string               `json:"policy_digest"`
	Fired       []Fired              `json:"fired"`
	Approvers   []string             `json:"approvers,omitempty"`
	Obligations []intents.Obligation `json:"obligations,omitempty"`
	Input       map[string]any       `json:"input"`
}

// Fired is a rule that denied or held. A refusal that no rule made (IDDefault,
// IDEngine) has no METADATA.
type Fired struct {
	Effect intents.Verdict `json:"effect"` // deny or hold
	Reason string          `json:"reason"`
	RuleInfo
}

// Explain judges an order anew and says why.
func (e *Engine) Explain(ctx context.Context, q Question) (Explanation, error) {
	input := Input(q.Order, q.Facts)
	r, _, err := e.Judge(ctx, q)
	if err != nil {
		return Explanation{}, err
	}
	x := Explanation{Verdict: r.Verdict(), Policy: e.digest, Fired: []Fired{}, Approvers: r.Approvers(), Obligations: r.Obligations, Input: input}
	add := func(effect intents.Verdict, rules []Rule) {
		for _, rule := range rules {
			info := e.rules[rule.ID]
			info.ID = rule.ID
			x.Fired = append(x.Fired, Fired{effect, rule.Reason, info})
		}
	}
	add(intents.Deny, r.Deny)
	add(intents.Hold, r.Hold)
	return x, nil
}
