package audit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/state"
)

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
	case !slices.Equal(held.facts.Inputs, rel.Facts.Inputs):
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

// askedFor are those who asked for an order.
func (j *job) askedFor(e *intents.Envelope) intents.Asked {
	if j.asked != nil && len(j.asked.Users) > 0 {
		return *j.asked
	}
	asked := intents.Asked{Users: []string{e.Principal().UserID}}
	if s := j.keys.keys[e.Signer().KID].Subject; s != "" {
		asked.Users = append(asked.Users, s)
	}
	if g := e.Grant(); g != nil {
		asked.Keys = []string{intents.KeyOfClient(g.Act.Client)}
	}
	return asked
}

// release judges a release again: stages 6 and 7, with the roles that the
// record says, which from the rules on that cut them must be those of then.
func (r *replayer) release(ctx context.Context, j *job, e *intents.Envelope) error {
	d, f := j.release.Decision, j.release.Facts
	rows, err := r.catalog(d.Catalog)
	if err != nil {
		return err
	}
	row, known := rows.Lookup(e.Type())
	if !known {
		return agree(d, intents.Deny, intents.UnknownIntent, nil, nil)
	}
	if caps, known := j.dir.Capabilities(e.Principal().Tenant, f.Roles); !known || !state.Entitled(j.rules, caps, e.Type(), row.Capability, e.Args(), e.Principal().UserID) {
		return agree(d, intents.Deny, intents.RBACForbidden, nil, nil)
	}
	if err := j.dir.CheckTool(j.rules, e); err != nil {
		return agree(d, intents.Deny, intents.CodeOf(err), nil, nil)
	}
	if roles, err := j.dir.RolesFor(j.rules, e, true); j.rules >= intents.RulesStrict && (err != nil || !slices.Equal(f.Roles, roles)) {
		return errors.New("replay: released with other roles than grant and directory give")
	}
	engine, err := r.engine(ctx, d.PolicyDigest, j.dir)
	if err != nil {
		return err
	}
	res, broken, err := r.ask(ctx, engine, j.question(e, d, f))
	if err != nil {
		return err
	}
	if broken {
		return unreplayable("the policy failed or took too long now")
	}
	return cmp.Or(agreeOn(d, res), j.judged())
}
