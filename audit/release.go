package audit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/state"
)

// checkRelease verifies a held intent again, as of its release: signature, key
// and grant, and that the record describes it as the envelope does.
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
	case rel.Decision.IntentID != e.ID():
		return nil, errors.New("the release names another intent")
	case rel.Decision.Executor != held.decision.Executor || rel.Decision.Effect != held.decision.Effect:
		return nil, errors.New("released for another executor or effect than it was held for")
	case g != nil && !intents.Subset(rel.Inputs.Roles, g.Roles):
		return nil, errors.New("released with roles that the grant does not give")
	case !slices.Equal(held.inputs.Inputs, rel.Inputs.Inputs), !reflect.DeepEqual(held.inputs.Task, rel.Inputs.Task):
		return nil, errors.New("released with other inputs than it was held with")
	}
	asked := j.requestersOf(e)
	if terms := held.decision.Hold; terms != nil {
		for _, rule := range terms.Rules {
			if !rule.Satisfied(rel.Inputs.Approvals, asked) {
				return nil, fmt.Errorf("released without the approvals that %s wants", rule.ID)
			}
		}
	}
	return e, nil
}

// requestersOf are the requesters of an intent.
func (j *job) requestersOf(e *intents.Envelope) intents.Requesters {
	if j.requesters != nil {
		return *j.requesters
	}
	p := e.Principal()
	who := intents.Approver{User: p.UserID}
	if g := e.Grant(); g != nil {
		who.Key = intents.CallerOf(g.Act.Client)
	}
	return j.dir.Requesters(p.Tenant, who, j.keys.keys[e.Signer().KID].Subject)
}

// release judges a release again: stages 6 and 7, with the roles that the
// record says, which must be those of then.
func (r *replayer) release(ctx context.Context, j *job, e *intents.Envelope) error {
	d, f := j.release.Decision, j.release.Inputs
	rows, err := r.catalog(d.Catalog)
	if err != nil {
		return err
	}
	row, known := rows.Lookup(e.Type())
	if !known {
		return agree(d, intents.Deny, intents.UnknownIntent, nil, nil)
	}
	if caps, known := j.dir.Capabilities(e.Principal().Tenant, f.Roles); !known || !state.Allows(caps, e.Type(), row.Capability, e.Args(), e.Principal().UserID) {
		return agree(d, intents.Deny, intents.RBACForbidden, nil, nil)
	}
	if err := j.dir.CheckTool(e); err != nil {
		return agree(d, intents.Deny, intents.CodeOf(err), nil, nil)
	}
	if roles, err := j.dir.RolesFor(e); err != nil || !slices.Equal(f.Roles, roles) {
		return errors.New("replay: released with other roles than grant and directory give")
	}
	res, broken, err := r.judge(ctx, j, e, d, f)
	if err != nil {
		return err
	}
	if broken {
		return unreplayable("the policy failed or took too long now")
	}
	return cmp.Or(agreeOn(d, res), j.judged())
}
