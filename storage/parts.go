package storage

import (
	"encoding/hex"
	"encoding/json"
	"errors"

	"aob.dev/writ/intents"
)

// Parts that stand by themselves so that they, or what stands beside them, can be
// erased (DESIGN §6).
const (
	PartSummary = "summary" // of an order: what is read in place of the order once that is erased
	PartResult  = "result"  // of an outcome: its result
	PartReason  = "reason"  // of an outcome: its executor's words
)

// ErasedReason is the reason of an outcome whose result or words were erased.
const ErasedReason = "erased by an operator"

// Summary is what folds and projections need of an order that they do not carry
// out themselves. It holds names and ids, and neither arguments nor labels.
type Summary struct {
	Type    string          `json:"type"`
	Tenant  string          `json:"tenant"`
	User    string          `json:"user"`
	Context intents.Context `json:"context"`
	PlanID  string          `json:"plan_id,omitempty"` // that the arguments of an accepted order name
	Key     string          `json:"key"`               // hex of its OrderKey
}

// SummaryOf an order. Arguments of a refused order may be anything, and are not read.
func SummaryOf(e *intents.Envelope, verdict intents.Verdict) Summary {
	pr := e.Principal()
	key := OrderKey(pr.Tenant, pr.UserID, e.Type(), e.Constraints().IdempotencyKey)
	s := Summary{Type: e.Type(), Tenant: pr.Tenant, User: pr.UserID, Context: e.Context(), Key: hex.EncodeToString(key[:])}
	s.Context.Labels = nil
	if verdict != intents.Deny {
		s.PlanID = e.StringArg("plan_id")
	}
	return s
}

// ReadSummary reads the part "summary".
func ReadSummary(parts map[string]json.RawMessage) (s Summary, err error) {
	if err := json.Unmarshal(parts[PartSummary], &s); err != nil || s.Type == "" || s.Tenant == "" {
		return s, errors.New("the part summary is not one")
	}
	return s, nil
}

// Body is the order as far as its summary tells.
func (s Summary) Body() intents.Body {
	var b intents.Body
	b.Intent.Type, b.Actor.Tenant, b.Actor.UserID, b.Context = s.Type, s.Tenant, s.User, &s.Context
	b.Intent.Args = json.RawMessage(`{}`)
	if raw, err := json.Marshal(map[string]string{"plan_id": s.PlanID}); err == nil && s.PlanID != "" {
		b.Intent.Args = raw
	}
	return b
}

// outcomePart is the part "outcome" where result, words and facts have parts of
// their own.
type outcomePart struct {
	Of        int64          `json:"of"`
	Attempt   int            `json:"attempt"`
	Status    intents.Status `json:"status"`
	Code      intents.Code   `json:"code"`
	Reason    string         `json:"reason,omitempty"`
	Retryable bool           `json:"retryable,omitempty"`
	Events    []string       `json:"events,omitempty"` // of the facts, in their order
	MS        int64          `json:"duration_ms"`
}

// OutcomeParts are the parts of the record of an outcome that an executor
// reported. Plans keep the reason of a contract violation, which names no value.
func OutcomeParts(out intents.Outcome) (map[string]json.RawMessage, error) {
	p := outcomePart{Of: out.Of, Attempt: out.Attempt, Status: out.Status, Code: out.Code, Retryable: out.Retryable, MS: out.MS}
	parts := make(map[string]json.RawMessage, 3)
	var err error
	put := func(name string, v any) {
		if err == nil {
			parts[name], err = json.Marshal(v)
		}
	}
	for _, f := range out.Facts {
		p.Events = append(p.Events, f.Event)
	}
	if out.Code == intents.ContractViolation {
		p.Reason = out.Reason
	} else if out.Reason != "" {
		put(PartReason, out.Reason)
	}
	if out.Result != nil {
		put(PartResult, out.Result)
	}
	if len(out.Facts) > 0 {
		put(PartFacts, out.Facts)
	}
	put(PartOutcome, p)
	return parts, err
}

// ReadOutcome reads the outcome of a record's parts, in one part or in several.
// Of facts that are not there the events remain, with an empty payload.
func ReadOutcome(parts map[string]json.RawMessage) (intents.Outcome, error) {
	var p struct {
		intents.Outcome
		Events []string `json:"events"`
	}
	if err := json.Unmarshal(parts[PartOutcome], &p); err != nil {
		return intents.Outcome{}, err
	}
	out := p.Outcome
	var err error
	if raw, there := parts[PartResult]; there {
		out.Result = raw
	}
	if raw, there := parts[PartReason]; there {
		err = json.Unmarshal(raw, &out.Reason)
	}
	if raw, there := parts[PartFacts]; there {
		err = errors.Join(err, json.Unmarshal(raw, &out.Facts))
	} else {
		for _, event := range p.Events {
			out.Facts = append(out.Facts, intents.Fact{Event: event, Payload: json.RawMessage(`{}`)})
		}
	}
	return out, err
}

// Outcome of an outcome's record; what was erased of it is said in the reason.
func (r Record) Outcome() (intents.Outcome, error) {
	out, err := ReadOutcome(r.Parts)
	_, result := r.Erased[PartResult]
	_, reason := r.Erased[PartReason]
	if result || reason {
		out.Reason = ErasedReason
	}
	return out, err
}
