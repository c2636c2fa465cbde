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

// checkAll verifies records in order, up to the first bad one, on a worker. The
// receipts among them are verified together, and one by one only if that fails.
func (v *verifier) checkAll(ctx context.Context, jobs []*job) {
	together := v.receipts(jobs)
	for i, j := range jobs {
		if j.outcome != nil && together[i] {
			continue
		}
		if err := v.check(ctx, j); err != nil {
			v.fail(j.Position, j.id(), err.Error())
			return
		}
	}
}

// receipts says which of them need not be looked at any more.
func (v *verifier) receipts(jobs []*job) []bool {
	var batch intents.Receipts
	added := make([]bool, len(jobs))
	for i, j := range jobs {
		if j.outcome != nil && j.about != nil && j.receipt != "" {
			added[i] = batch.Add(j.receipt, j.about.receipt(v.head.Origin, j.item, j.leaf.RecordDigest), intents.KeysFunc(j.key))
		}
	}
	if !batch.Verify() {
		clear(added)
	}
	return added
}

func (v *verifier) check(ctx context.Context, j *job) error {
	switch {
	case j.bare:
		if v.tag != "" && j.leaf.TenantTag == v.tag {
			return errors.New("a record of the tenant is left out")
		}
		return nil
	case j.order != nil:
		if v.tag != "" && j.order.body.Actor.Tenant == v.head.Tenant {
			if j.leaf.TenantTag != v.tag {
				return errors.New("its leaf does not carry the tenant's tag")
			}
			if !j.order.hidden() {
				v.tagged.Store(true)
			}
		}
		if j.order.hidden() {
			return cmp.Or(v.checkHidden(j), j.unfit)
		}
		return v.checkAndReplay(ctx, j, v.checkOrder, v.replayer.decide)
	case j.outcome != nil:
		return j.checkOutcome()
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

// checkOrder verifies an order as the router had to: its signature, its key and
// grant as they were in force, its task, and that the record says of it what it
// says itself.
func (v *verifier) checkOrder(j *job) (*intents.Envelope, error) {
	o := j.order
	e, err := o.opened.Verify(intents.Verifier{Keys: intents.KeysFunc(j.key), Origin: v.head.Origin, Now: j.now, Grants: &v.grants})
	if err != nil {
		return nil, err
	}
	if g := e.Grant(); g != nil && !j.revoked.IsZero() && time.Unix(g.IssuedAt, 0).Before(j.revoked) {
		return nil, errors.New("its grant was revoked before")
	}
	d, f := o.decision, o.facts
	switch {
	case d.IntentID != e.ID():
		return nil, errors.New("the record names another intent_id")
	case d.Fingerprint != e.Fingerprint():
		return nil, errors.New("the record gives another fingerprint")
	case o.grant != e.GrantToken():
		return nil, errors.New("the record holds another grant than the order")
	case f.Signer.KID != e.Signer().KID || f.Signer.Role != string(e.Signer().Role):
		return nil, errors.New("the record names another signer")
	}
	if err := o.plain(); err != nil {
		return nil, err
	}
	if s := o.summary; s != nil {
		if is, _, err := state.SummaryOf(e, d); err != nil || !reflect.DeepEqual(*s, is) {
			return nil, errors.New("its summary says something else than the order")
		}
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
	if g := e.Grant(); g != nil && len(f.Roles) > 0 && !subset(f.Roles, g.Roles) {
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

// plain is what has to hold of any decision: a refusal has a code, and an accepted
// order is kept under its own idempotency key.
func (o *order) plain() error {
	d := o.decision
	if d.Verdict == intents.Deny && (d.Code == intents.OK || d.Code == "") {
		return errors.New("a refusal without a code")
	}
	if d.Key == "" {
		return nil // before it was recorded
	}
	if key, err := o.key(); err != nil || d.Key != key.String() {
		return errors.New("the decision names another idempotency key than the order")
	}
	return nil
}

// mayDo: the signer's role may sign the type, and the decision sends it where
// the catalog says. Of another catalog than ours only what the fold rests on is
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

// scope holds an accepted order of a task to the step that opened the task.
func (j *job) scope(by intents.Role, tenant, user string, c intents.Context) error {
	if by != intents.RoleTask {
		return nil
	}
	t, f := j.task, j.order.facts
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
	case !t.MayOrder(j.order.body.Intent.Type):
		return errors.New("the agent " + t.Agent + " has no tool that orders " + j.order.body.Intent.Type)
	case !j.waited(t.Approvals(j.order.body.Intent.Type, j.order.body.Intent.Args)):
		return errors.New("its agent's file holds it, and it did not wait for people")
	case j.order.body.Intent.Type == state.TypeApprovalAsk && !j.waited(j.dir.AskRule(tenant, j.order.body.Intent.Args)):
		return errors.New("people are asked, and it did not wait for them")
	case t.Agent != "" && f.Skill != nil && !slices.Contains(t.Spec.Skills, f.Skill.Name):
		return errors.New("the skill is not among those of the task's step")
	case j.order.body.Intent.Type == "skill.load":
		a, err := unmarshal[catalog.SkillLoad](j.order.body.Intent.Args)
		if err == nil && !t.MayLoad(a.Skills) { // of one, its facts say so
			return errors.New("one of the skills is not among those of the task's step")
		}
	}
	return nil
}

// meetable: the people of the tenant could meet every rule that holds the order.
func (j *job) meetable(tenant string) error {
	terms := j.order.decision.Hold
	if terms == nil || j.asked == nil || j.rules < intents.RulesWorkflows {
		return nil
	}
	for _, rule := range terms.Rules {
		if !j.dir.CanMeet(tenant, rule, *j.asked) {
			return errors.New("it waits for " + rule.ID + ", which nobody could meet")
		}
	}
	return nil
}

// waited says whether the order is held, by all of these rules at least.
func (j *job) waited(rules []intents.HoldRule) bool {
	var held []intents.HoldRule
	if terms := j.order.decision.Hold; terms != nil {
		held = terms.Rules
	}
	for _, rule := range rules {
		if !slices.ContainsFunc(held, func(h intents.HoldRule) bool { return reflect.DeepEqual(h, rule) }) {
			return false
		}
	}
	return true
}

// checkOutcome verifies the receipt of the order that an outcome ends.
func (j *job) checkOutcome() error {
	if j.receipt == "" {
		return nil
	}
	r, err := intents.OpenReceipt(j.receipt, intents.KeysFunc(j.key))
	if err != nil {
		return fmt.Errorf("receipt: %w", err)
	}
	switch {
	case r.OutcomeDigest != j.leaf.RecordDigest || r.Position != j.of:
		return errors.New("its receipt names another record")
	case r.Code != j.outcome.Code:
		return errors.New("its receipt gives another code")
	case j.about != nil && (r.IntentID != j.about.intentID || r.RecordDigest != j.about.digest || r.PolicyDigest != j.about.policy):
		return errors.New("its receipt names another order")
	default:
		return nil
	}
}

// receipted is an order with what its receipt says of it.
type receipted struct{ intentID, tenant, policy, digest string }

func receiptedOf(it *item, digest string) receipted {
	d := it.order.decision
	return receipted{d.IntentID, it.order.body.Actor.Tenant, d.PolicyDigest, digest}
}

// receipt that follows from the records of the order and of its outcome.
func (o receipted) receipt(issuer string, outcome *item, digest string) intents.Receipt {
	return intents.Receipt{
		Issuer: issuer, IntentID: o.intentID, Position: outcome.of, Code: outcome.outcome.Code, PolicyDigest: o.policy,
		RecordDigest: o.digest, OutcomeDigest: digest, WithinSec: intents.PromiseSeconds,
	}
}

func subset(a, b []string) bool {
	for _, x := range a {
		if !slices.Contains(b, x) {
			return false
		}
	}
	return true
}
