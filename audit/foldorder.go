package audit

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/storage/ledger"
)

// takeOrder says what was in force for an order and, if it is an allowed order
// of the router, applies it: keys, directory, plans and tasks. What the worker
// finds wrong with it later makes the bundle bad at its position all the same.
func (f *fold) takeOrder(it *item, j *job) error {
	o := it.order
	tenant, user := o.body.Actor.Tenant, o.body.Actor.UserID
	j.dir, j.policy, j.roles, j.rules = f.generation(o.decision.Directory), f.policy, f.roles, f.rules
	j.revoked = f.revoked[tenant+"/"+user]
	if _, known := f.keys.keys[o.kid()]; !known {
		if j.task = f.tasks[o.kid()]; j.task != nil {
			j.ended = j.task.ended
		}
	}
	if o.decision.Directory >= it.position {
		return errors.New("the decision rests on records that come after it")
	}
	if err := f.versions(it); err != nil {
		return err
	}
	f.lacks(it, it.position, o.decision.IntentID, tenant)
	switch o.decision.Verdict {
	case intents.Deny:
		return nil
	case intents.Allow, intents.Hold:
	default:
		return fmt.Errorf("unknown verdict %q", o.decision.Verdict)
	}
	if o.hidden() && (o.decision.Executor == catalog.ExecutorRouter || o.decision.Verdict == intents.Hold) {
		return errors.New("an order that others rest on is withheld")
	}
	key, err := o.key()
	if err != nil {
		return err
	}
	if h, taken := f.taken[key]; f.whole && taken && (h.ended == 0 || it.at.Before(time.Unix(h.ended, 0).Add(keyLife))) {
		return fmt.Errorf("a second order under the idempotency key of record %d", h.position)
	}
	f.taken[key] = holder{position: it.position}
	f.orders[it.position] = &open{
		key:      key,
		intentID: o.decision.IntentID, tenant: tenant, verdict: o.decision.Verdict, digest: it.leaf.RecordDigest,
		policy: o.decision.PolicyDigest, task: j.task, typ: o.body.Intent.Type,
	}
	if o.decision.Verdict == intents.Hold {
		if j.task != nil {
			j.task.ended = "held for approval"
		}
		return f.hold(it, f.orders[it.position])
	}
	if o.decision.Executor != catalog.ExecutorRouter {
		return nil
	}
	if err := f.apply(it, tenant, user); err != nil {
		return fmt.Errorf("%s: %w", o.body.Intent.Type, err)
	}
	return nil
}

// versions: the policy that decided is in force, or was for a refusal, or a
// record soon says so, since one is put in force before its record.
func (f *fold) versions(it *item) error {
	d := it.order.decision
	if d.Catalog != f.catalog {
		return errors.New("decided under a catalog that is not in force")
	}
	if d.PolicyDigest == f.policy || (d.Verdict == intents.Deny && f.policies[d.PolicyDigest]) {
		return nil
	}
	if _, waiting := f.early[d.PolicyDigest]; !waiting {
		f.early[d.PolicyDigest] = it.position
	}
	return nil
}

// apply is the effect of an order of the router.
func (f *fold) apply(it *item, tenant, user string) error {
	o := it.order
	args := o.body.Intent.Args
	switch o.body.Intent.Type {
	case typeApprove:
		return f.approve(it)
	case "key.put":
		a, err := unmarshal[catalog.KeyPut](args)
		if err != nil {
			return err
		}
		set, keys, err := intents.OpenKeySet(a.KeySet, f.root)
		if err != nil {
			return err
		}
		if set.Version != f.keys.set.Version+1 || set.Prev != intents.Digest([]byte(f.keys.token)) {
			return errors.New("not the successor of the key set in force")
		}
		f.keys = &keySet{a.KeySet, set, keys, it.position}
		return nil
	case "admin.put":
		d, err := f.dir.adminPut(it.position, args, tenant, f.begin)
		if err == nil {
			f.putDirectory(d)
		}
		return errors.Join(err, f.disabled(args, tenant))
	case "skill.approve":
		d, err := f.dir.approve(it.position, args, tenant)
		if err == nil {
			f.putDirectory(d)
		}
		return err
	case "policy.push":
		a, err := unmarshal[catalog.PolicyPush](args)
		if err != nil {
			return err
		}
		if a.Revision <= f.revision {
			return fmt.Errorf("pushes policy revision %d after revision %d", a.Revision, f.revision)
		}
		return f.takeControl(&control{Policy: a.Digest, Revision: a.Revision})
	case "grant.revoke":
		a, err := unmarshal[catalog.GrantRevoke](args)
		if err != nil {
			return err
		}
		before, err := time.Parse(time.RFC3339Nano, a.Before)
		if err != nil {
			return err
		}
		if before.After(it.now.Add(intents.Leeway)) {
			return errors.New("revokes grants of the future")
		}
		before = f.rules.RevokedBefore(before)
		if name := a.Tenant + "/" + a.Sub; before.After(f.revoked[name]) {
			f.revoked[name] = before // the latest stands
		}
		f.endPlansOf(a.Tenant, a.Sub, "the user's grants were revoked")
		return nil
	case "order.resolve":
		return f.resolve(args, tenant)
	case typeErase:
		return f.erase(it, tenant, user)
	default:
		return f.applyPlan(it, tenant, user)
	}
}

// applyPlan is the effect of a plan order.
func (f *fold) applyPlan(it *item, tenant, user string) error {
	o := it.order
	args := o.body.Intent.Args
	switch o.body.Intent.Type {
	case "plan.open":
		a, err := unmarshal[catalog.PlanOpen](args)
		if err != nil {
			return err
		}
		if f.plans[tenant+"/"+a.PlanID] != nil {
			return errors.New("a plan with this id exists")
		}
		f.plans[tenant+"/"+a.PlanID] = &plan{tenant: tenant, user: user, session: o.ctx.SessionID, turn: o.ctx.TurnID, revisions: map[string]*revision{}}
		return nil
	case "plan":
		a, err := unmarshal[catalog.Plan](args)
		if err != nil {
			return err
		}
		p, err := f.plan(tenant, a.PlanID, it)
		if err != nil {
			return err
		}
		p.current = o.decision.IntentID
		p.revisions[p.current] = &revision{a.Revision, a.Steps}
		return nil
	case "step":
		return f.applyStep(it, tenant, user)
	case "step.finish":
		return f.finish(it, tenant, user)
	case "plan.claim":
		a, err := unmarshal[catalog.PlanClaim](args)
		if err != nil {
			return err
		}
		return f.endTasks(tenant, a.PlanID, it, "a newer plan.claim")
	case "plan.close":
		a, err := unmarshal[catalog.PlanClose](args)
		if err != nil {
			return err
		}
		return f.endTasks(tenant, a.PlanID, it, "the plan was closed")
	case "cancel":
		a, err := unmarshal[catalog.Cancel](args)
		if err != nil {
			return err
		}
		return f.endTasks(tenant, a.PlanID, it, "the plan was cancelled")
	default:
		return nil // other orders of the router change nothing that is verified here
	}
}

// resolve says how an order ended of which nobody knew. One that was never carried
// out may be sent again.
func (f *fold) resolve(args json.RawMessage, tenant string) error {
	a, err := unmarshal[catalog.OrderResolve](args)
	if err != nil {
		return err
	}
	o := f.unknown[a.IntentID]
	switch {
	case o == nil && !f.whole:
		return nil
	case o == nil, o.tenant != tenant && tenant != ledger.SystemTenant:
		return errors.New("no indeterminate order of the tenant has this intent_id")
	}
	delete(f.unknown, a.IntentID)
	if a.Status == string(intents.Failed) {
		delete(f.taken, o.key)
	}
	return nil
}

// finish ends a task, by its own key or, as failed, by its manager's.
func (f *fold) finish(it *item, tenant, user string) error {
	a, err := unmarshal[catalog.StepFinish](it.order.body.Intent.Args)
	if err != nil {
		return err
	}
	t := f.byTask[tenant+"/"+a.TaskID]
	switch {
	case t == nil && !f.whole:
		return nil
	case t == nil || t.user != user:
		return errors.New("no such task of this user")
	case t.ended != "":
		return errors.New("its task had ended: " + t.ended)
	case it.order.facts.Signer.Role == string(intents.RoleManager) && a.Status != string(intents.Failed):
		return errors.New("a manager may only say failed")
	}
	t.ended = "step.finish"
	return nil
}

// plan of an order's actor; an operator may act on any plan of the tenant.
func (f *fold) plan(tenant, id string, it *item) (*plan, error) {
	p := f.plans[tenant+"/"+id]
	if p == nil {
		return nil, errors.New("no such plan was opened")
	}
	if p.user != it.order.body.Actor.UserID && it.order.facts.Signer.Role != string(intents.RoleOperator) {
		return nil, errors.New("the plan belongs to another user")
	}
	return p, nil
}

func (f *fold) endTasks(tenant, id string, it *item, why string) error {
	p, err := f.plan(tenant, id, it)
	if err == nil {
		p.end(why)
	}
	return err
}

// disabled ends the plans of a user whom an admin.put disables, from the rules on
// that say so.
func (f *fold) disabled(args json.RawMessage, actor string) error {
	a, err := unmarshal[catalog.AdminPut](args)
	if err == nil && f.rules >= intents.RulesStrict && a.User != nil && a.User.Disabled {
		f.endPlansOf(named(actor, a.Tenant), a.User.UserID, "the user was disabled")
	}
	return err
}

func (f *fold) endPlansOf(tenant, user, why string) {
	for _, p := range f.plans {
		if p.tenant == tenant && p.user == user {
			p.end(why)
		}
	}
}

func (p *plan) end(why string) {
	for _, t := range p.tasks {
		if t.ended == "" {
			t.ended = why
		}
	}
	p.tasks = nil
}

// maxTaskLife bounds a task's deadline.
const maxTaskLife = time.Hour

// applyStep opens a task: manager's key → plan of a planner's key → step → the
// task's own key. That the signers have these roles is checked with their
// signatures; that the order names a plan that is there, here.
func (f *fold) applyStep(it *item, tenant, user string) error {
	a, err := unmarshal[catalog.Step](it.order.body.Intent.Args)
	if err != nil {
		return err
	}
	p, err := f.plan(tenant, a.PlanID, it)
	if err != nil {
		return err
	}
	r := p.revisions[a.PlanDigest]
	if r == nil || a.PlanDigest != p.current {
		return errors.New("plan_digest names no plan in force")
	}
	key, err := a.JWK.ToKey()
	if err != nil {
		return err
	}
	deadline, err := time.Parse(time.RFC3339Nano, a.Deadline)
	if err != nil {
		return err
	}
	if !deadline.After(it.now) || deadline.After(it.now.Add(maxTaskLife+intents.Leeway)) {
		return errors.New("the deadline is not within the next hour")
	}
	if f.tasks[key.KID] != nil || f.keys.keys[key.KID].KID != "" || f.byTask[tenant+"/"+a.TaskID] != nil {
		return errors.New("the key or the task id was used before")
	}
	unproved := a
	unproved.PoP = ""
	if err := intents.VerifyPoP(a.PoP, key, unproved); err != nil {
		return err
	}
	for _, s := range r.steps {
		if s.Step != a.Step {
			continue
		}
		t := &task{
			name: tenant + "/" + a.TaskID, id: a.TaskID, tenant: tenant, user: user, public: key.Public, planID: a.PlanID,
			session: p.session, turn: p.turn, revision: r.number, step: a.Step, skills: s.Skills, deadline: deadline,
		}
		f.tasks[key.KID], f.byTask[t.name] = t, t
		p.tasks = append(p.tasks, t)
		return nil
	}
	return errors.New("the plan has no such step")
}
