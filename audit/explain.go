package audit

import (
	"context"
	"errors"
	"slices"

	"aob.dev/writ/intents"
	"aob.dev/writ/policies"
)

// DecisionExplanation is a recorded decision with the rules that made it.
type DecisionExplanation struct {
	IntentID string                `json:"intent_id"`
	Position int64                 `json:"position"`
	Recorded intents.Decision      `json:"recorded"`
	Policy   *policies.Explanation `json:"policy,omitempty"` // absent: refused before policy was evaluated
}

// Explain decides a recorded intent again, by the policy of then or, if there is
// one, by another, over the directory and the inputs of then.
func Explain(ctx context.Context, s Source, id string, instead *policies.Engine) (DecisionExplanation, error) {
	f, r := newApplier(), newReplayer(instead)
	f.origin = s.Origin
	r.find = func(digest string) ([]byte, error) { return fetch(ctx, s.Blobs, digest) }
	f.inputs = newContents(s.blob(ctx))
	for rec, err := range s.Records.Scan(ctx, 0) {
		if err != nil {
			return DecisionExplanation{}, err
		}
		j, err := f.believe(ownItem(rec))
		if err != nil {
			return DecisionExplanation{}, err
		}
		if j.intent != nil && j.intent.decision.IntentID == id {
			return r.explain(ctx, j, s.Origin)
		}
	}
	return DecisionExplanation{}, ErrNotFound
}

// byPolicy are the codes of decisions that policy made.
var byPolicy = []intents.Code{intents.OK, intents.PolicyDenied, intents.ApprovalRequired}

func (r *replayer) explain(ctx context.Context, j *job, origin string) (DecisionExplanation, error) {
	d := j.intent.decision
	x := DecisionExplanation{IntentID: d.IntentID, Position: j.Position, Recorded: d}
	if !slices.Contains(byPolicy, d.Code) {
		return x, nil
	}
	if j.intent.hidden() {
		return x, errors.New("the intent was erased, and with it what the policy was asked")
	}
	e, err := j.intent.opened.Verify(intents.Verifier{Keys: intents.KeysFunc(j.key), Origin: origin, Now: j.now, Grants: new(intents.Grants)})
	if err != nil {
		return x, err
	}
	engine, err := r.engine(d.PolicyDigest, j.dir.Tenant(e.Principal().Tenant))
	var cannot unreplayable
	if errors.As(err, &cannot) {
		return x, errors.New(string(cannot))
	}
	if err != nil {
		return x, err
	}
	p, err := engine.Explain(ctx, j.question(e, d, j.intent.inputs))
	x.Policy = &p
	return x, err
}
