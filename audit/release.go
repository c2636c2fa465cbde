package audit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/policies"
)

// release is the content of a release record: how a held order was judged again.
type release struct {
	Of       int64            `json:"of"`
	By       string           `json:"by"` // intent_id of the last approval
	Decision intents.Decision `json:"decision"`
	Facts    intents.Facts    `json:"facts"`
}

// takeRelease ends a hold: an order of the router has its effect here.
func (f *fold) takeRelease(it *item, j *job) error {
	o := f.orders[it.of]
	switch {
	case o == nil && f.whole:
		return errors.New("releases an order that is not open")
	case o == nil:
		return nil
	case o.verdict != intents.Hold || o.released:
		return errors.New("releases an order that is not held")
	}
	o.released = true
	delete(f.held, o.intentID)
	rel := it.release
	if rel == nil || o.held == nil {
		return nil // withheld
	}
	if rel.By != o.last && f.whole {
		return errors.New("released by another order than the last approval")
	}
	j.about, j.task, j.order = o, o.task, nil
	j.dir, j.policy, j.roles, j.rules = f.generation(rel.Decision.Directory), f.policy, f.roles, f.rules
	if !it.now.Before(o.deadline) {
		return errors.New("released after its deadline")
	}
	for _, a := range rel.Facts.Approvals {
		if err := f.counts(o, a, j.dir); err != nil {
			return err
		}
	}
	actor := o.held.body.Actor
	j.revoked = f.revoked[actor.Tenant+"/"+actor.UserID]
	if rel.Decision.Directory >= it.position {
		return errors.New("the release rests on records that come after it")
	}
	if rel.Decision.Catalog != f.catalog {
		return errors.New("released under a catalog that is not in force")
	}
	if d := rel.Decision.PolicyDigest; d != f.policy {
		if _, waiting := f.early[d]; !waiting {
			f.early[d] = it.position // a record soon says so
		}
	}
	if rel.Decision.Executor != catalog.ExecutorRouter {
		return nil
	}
	took := *it
	took.order = o.held
	return f.apply(&took, actor.Tenant, actor.UserID)
}

// checkRelease verifies a held order again, as of its release: signature, key
// and grant, and that the record says of it what the order says itself.
func (v *verifier) checkRelease(j *job) (*intents.Envelope, error) {
	held, rel := j.about.held, j.release
	e, err := held.opened.Verify(intents.Verifier{Keys: intents.KeysFunc(j.key), Origin: v.head.Origin, Grants: &v.grants})
	if err != nil {
		return nil, err
	}
	g := e.Grant()
	switch {
	case g != nil && time.Unix(g.IssuedAt, 0).Before(j.revoked):
		return nil, errors.New("released although its grant was revoked before")
	case rel.Decision.Verdict != intents.Allow || rel.Decision.Code != intents.OK:
		return nil, errors.New("released by a decision that does not allow it")
	case rel.Decision.IntentID != e.ID() || rel.Decision.Fingerprint != e.Fingerprint():
		return nil, errors.New("the release names another order")
	case rel.Decision.Executor != held.decision.Executor || rel.Decision.Effect != held.decision.Effect:
		return nil, errors.New("released for another executor or effect than it was held for")
	case g != nil && !subset(rel.Facts.Roles, g.Roles):
		return nil, errors.New("released with roles that the grant does not give")
	case !sameInputs(held.facts.Inputs, rel.Facts.Inputs):
		return nil, errors.New("released with other inputs than it was held with")
	}
	asked := j.askedFor(e)
	if terms := held.decision.Hold; terms != nil {
		for _, rule := range terms.Rules {
			if !rule.Satisfied(rel.Facts.Approvals, asked) {
				return nil, fmt.Errorf("released without the approvals that %s wants", rule.ID)
			}
		}
	}
	return e, nil
}

func sameInputs(a, b []intents.HeldInput) bool { return slices.Equal(a, b) }

// askedFor are those who asked for an order.
func (j *job) askedFor(e *intents.Envelope) intents.Asked {
	asked := intents.Asked{Users: []string{e.Principal().UserID}}
	if s := j.keys.keys[e.Signer().KID].Subject; s != "" {
		asked.Users = append(asked.Users, s)
	}
	if g := e.Grant(); g != nil {
		asked.Key = intents.KeyOfClient(g.Act.Client)
	}
	return asked
}

// rerelease judges a release again: stages 6 and 7, with the roles that the
// record says, which from the rules on that cut them must be those of then.
func (r *replayer) rerelease(ctx context.Context, j *job, e *intents.Envelope) error {
	return r.tally(r.releasing(ctx, j, e))
}

func (r *replayer) releasing(ctx context.Context, j *job, e *intents.Envelope) error {
	d, f := j.release.Decision, j.release.Facts
	rows, err := r.catalog(d.Catalog)
	if err != nil {
		return err
	}
	row, known := rows[e.Type()]
	if !known {
		return agree(d, intents.Deny, intents.UnknownIntent, nil, nil)
	}
	if caps, known := j.dir.capabilities(e.Principal().Tenant, f.Roles); !known || !given(j.rules, caps, row.need(j.rules, e)) {
		return agree(d, intents.Deny, intents.RBACForbidden, nil, nil)
	}
	if roles, may := j.rolesThen(e); j.rules >= intents.RulesStrict && (!may || !slices.Equal(f.Roles, roles)) {
		return errors.New("replay: released with other roles than grant and directory give")
	}
	engine, err := r.engine(ctx, d.PolicyDigest, j.dir, j.rules)
	if err != nil {
		return err
	}
	res, err := engine.Decide(ctx, policies.Input(e, f))
	if err != nil {
		return err
	}
	res = res.Approved(f.Approvals, j.askedFor(e))
	code := intents.OK
	if x := res.Refusal(); x != nil {
		code = x.Code
	}
	return agree(d, res.Verdict(), code, res.PolicyIDs(), res.Obligations)
}

func readReleasePart(body json.RawMessage) (*release, error) {
	var rel release
	if err := json.Unmarshal(body, &rel); err != nil {
		return nil, errors.New("part release is not one")
	}
	return &rel, nil
}
