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
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/state"
)

// checkAll verifies records in order, up to the first bad one, on a worker.
func (v *verifier) checkAll(ctx context.Context, jobs []*job) {
	for _, j := range jobs {
		if err := v.check(ctx, j); err != nil {
			v.fail(j.Position, j.id(), err.Error())
			return
		}
	}
}

func (v *verifier) check(ctx context.Context, j *job) error {
	switch {
	case j.bare:
		if v.tag != "" && j.leaf.TenantTag == v.tag {
			return errors.New("a record of the tenant is left out")
		}
		return nil
	case j.intent != nil:
		if v.tag != "" && j.intent.body.Actor.Tenant == v.head.Tenant {
			if j.leaf.TenantTag != v.tag {
				return errors.New("its leaf does not carry the tenant's tag")
			}
			if !j.intent.hidden() {
				v.tagged.Store(true)
			}
		}
		if j.intent.hidden() {
			return cmp.Or(v.checkHidden(j), j.unfit)
		}
		return v.checkAndReplay(ctx, j, v.checkIntent, v.replayer.decide)
	case j.release != nil && j.about != nil:
		return v.checkAndReplay(ctx, j, v.checkRelease, v.replayer.release)
	default:
		return nil
	}
}

func (v *verifier) checkAndReplay(ctx context.Context, j *job, check func(*job) (*intents.Envelope, error), replay func(context.Context, *job, *intents.Envelope) error) error {
	e, err := check(j)
	err = cmp.Or(err, j.unfit)
	if err == nil && v.opts.Replay {
		err = v.replayer.tally(replay(ctx, j, e))
	}
	return err
}

// key chooses keys as of the record's own position.
func (j *job) key(kid string) (intents.Key, error) {
	if k, ok := j.keys.keys[kid]; ok {
		if k.Revoked {
			return intents.Key{}, intents.Refuse(intents.KeyRevoked, "/sig", "the key was revoked at this position")
		}
		return k, nil
	}
	if t := j.task; t != nil && t.key.KID == kid {
		return t.key, nil
	}
	return intents.Key{}, intents.Refuse(intents.KeyUnknown, "/sig", "no key with this kid was in force at this position")
}

// checkIntent verifies an intent as the router had to: its signature, its key and
// grant as they were in force, its task, and that the record describes it as it
// describes itself.
func (v *verifier) checkIntent(j *job) (*intents.Envelope, error) {
	o := j.intent
	e, err := o.opened.Verify(intents.Verifier{Keys: intents.KeysFunc(j.key), Origin: v.head.Origin, Now: j.now, Grants: &v.grants})
	if err != nil {
		return nil, err
	}
	if g := e.Grant(); g != nil && !j.revoked.IsZero() && time.Unix(g.IssuedAt, 0).Before(j.revoked) {
		return nil, errors.New("its grant was revoked before")
	}
	d, f := o.decision, o.inputs
	switch {
	case d.IntentID != e.ID():
		return nil, errors.New("the record names another intent_id")
	case o.grant != e.GrantToken():
		return nil, errors.New("the record holds another grant than the intent")
	case f.Signer.KID != e.Signer().KID || f.Signer.Role != string(e.Signer().Role):
		return nil, errors.New("the record names another signer")
	}
	if d.Verdict == intents.Deny && (d.Code == intents.OK || d.Code == "") {
		return nil, errNoCode
	}
	is, wants, err := state.SummaryOf(e, d)
	if err != nil || wants != (o.summary != nil) || wants && !reflect.DeepEqual(*o.summary, is) {
		return nil, errors.New("its summary says something else than the intent")
	}
	if d.Verdict == intents.Deny {
		return e, nil
	}
	if err := j.fresh(e); err != nil {
		return nil, err
	}
	if err := mayDo(e.Type(), e.Signer().Role, d); err != nil {
		return nil, err
	}
	if g := e.Grant(); g != nil && len(f.Roles) > 0 && !intents.Subset(f.Roles, g.Roles) {
		return nil, errors.New("decided with roles that the grant does not give")
	}
	if j.task != nil && e.Signer().Role == intents.RoleTask {
		if err := j.task.Takes(e.Grant()); err != nil {
			return nil, err
		}
	}
	pr := e.Principal()
	return e, cmp.Or(j.scope(e.Signer().Role, pr.Tenant, pr.UserID, e.Context()), j.meetable(pr.Tenant))
}

var errNoCode = errors.New("a refusal without a code")

// mayDo: the signer's role may sign the type, and the decision sends it where
// the catalog says. Of another catalog than ours only what the state depends on is
// known: that is the same in all.
func mayDo(typ string, signer intents.Role, d intents.Decision) error {
	row, known := catalog.Builtin().Lookup(typ)
	if !known || (d.Catalog != catalog.Builtin().Digest() && row.Executor != catalog.ExecutorRouter) {
		if d.Executor == catalog.ExecutorRouter {
			return errors.New("carried out by the router, which knows no such type")
		}
		return nil
	}
	switch {
	case !row.MaySign(signer):
		return fmt.Errorf("a %s key may not sign %s", signer, typ)
	case row.Executor != d.Executor:
		return errors.New("decided for another executor than the catalog's")
	default:
		return nil
	}
}

// fresh: issued_at and ttl_sec bound acceptance.
func (j *job) fresh(e *intents.Envelope) error {
	switch {
	case e.IssuedAt().After(j.now.Add(intents.Leeway + time.Millisecond)):
		return errors.New("accepted before it was issued")
	case j.now.After(e.IssuedAt().Add(e.TTL()).Add(intents.Leeway)):
		return errors.New("accepted after its ttl_sec")
	default:
		return nil
	}
}

// scope checks an accepted intent of a task against the step that opened the task, and a push of
// agents against those that it may replace.
func (j *job) scope(by intents.Role, tenant, user string, c intents.Context) error {
	if typ := j.intent.body.Intent.Type; typ == state.TypeRegistryPush && !j.waited(j.dir.ReplaceRule(tenant, j.intent.inputs.Scopes)) {
		return errors.New("it replaces a built-in agent, and it did not wait for people")
	}
	if by != intents.RoleTask {
		return nil
	}
	t, f := j.task, j.intent.inputs
	switch {
	case t == nil:
		return errors.New("its task is not known")
	case t.Ended != "":
		return errors.New("its task had ended: " + t.Ended)
	case j.now.After(t.Deadline):
		return errors.New("its task was past its deadline")
	case tenant != t.Tenant || user != t.User:
		return errors.New("its task is another user's")
	case c.TaskID != t.ID || c.PlanID != t.Plan || c.Revision != t.Revision || c.Step != t.Step || c.Ask != t.Ask || c.SessionID != t.Session || c.TurnID != t.Turn:
		return errors.New("its context is not that of the step that opened its task")
	case f.Task == nil || f.Task.TaskID != t.ID || f.Task.PlanID != t.Plan || f.Task.Revision != t.Revision || f.Task.Step != t.Step ||
		!slices.Equal(f.Task.Skills, t.Spec.Skills) || f.Task.Agent != t.Agent:
		return errors.New("decided with another task than the step's")
	case !t.MayIntent(j.intent.body.Intent.Type):
		return errors.New("the agent " + t.Agent + " has no tool for " + j.intent.body.Intent.Type)
	case !j.waited(t.Approvals(j.intent.body.Intent.Type, j.intent.body.Intent.Args)):
		return errors.New("its agent's file holds it, and it did not wait for people")
	case j.intent.body.Intent.Type == state.TypeApprovalAsk && !j.waited(j.dir.AskRule(tenant, j.intent.body.Intent.Args)):
		return errors.New("people are asked, and it did not wait for them")
	case t.Agent != "" && f.Skill != nil && !slices.Contains(t.Spec.Skills, f.Skill.Name):
		return errors.New("the skill is not among those of the task's step")
	case j.intent.body.Intent.Type == "skill.load":
		a, err := unmarshal[catalog.SkillLoad](j.intent.body.Intent.Args)
		if err == nil && !t.MayLoad(a.Skills) { // of one that its inputs show
			return errors.New("one of the skills is not among those of the task's step")
		}
	}
	return nil
}

// meetable: the people of the tenant could meet every rule that holds the intent.
func (j *job) meetable(tenant string) error {
	terms := j.intent.decision.Hold
	if terms == nil || j.requesters == nil {
		return nil
	}
	for _, rule := range terms.Rules {
		if !j.dir.CanMeet(tenant, rule, *j.requesters) {
			return errors.New("it waits for " + rule.ID + ", which nobody could meet")
		}
	}
	return nil
}

// waited reports whether the intent is held, by at least all of these rules, or a standing approval
// satisfies them.
func (j *job) waited(rules []intents.HoldRule) bool {
	var held []intents.HoldRule
	asked := j.dir.Requesters(j.intent.body.Actor.Tenant, intents.Approver{}, "")
	if terms := j.intent.decision.Hold; terms != nil {
		held = terms.Rules
	}
	for _, rule := range rules {
		if j.intent.inputs.Standing != "" && rule.MayStand() && rule.Satisfied(j.intent.inputs.Approvals, asked) && (j.seen == nil || slices.Contains(j.seen, rule.ID)) {
			continue
		}
		if !slices.ContainsFunc(held, func(h intents.HoldRule) bool { return reflect.DeepEqual(h, rule) }) {
			return false
		}
	}
	return true
}
