package audit

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
)

// takeIntent returns what was in force for an intent and, if it was accepted, applies it:
// one of the router is judged before. A later finding of the worker still makes
// the bundle bad at its position.
func (f *applier) takeIntent(it *item, j *job) error {
	o := it.intent
	tenant, user := o.body.Actor.Tenant, o.body.Actor.UserID
	view := f.state.View()
	j.dir, j.revoked = f.generation(o.decision.Directory), view.RevokedBefore(tenant, user)
	j.task = taskOf(view, o.kid())
	if o.decision.Directory >= it.Position {
		return errors.New("the decision rests on records that come after it")
	}
	if err := f.versions(it, view); err != nil {
		return err
	}
	if err := it.checkTransient(); err != nil {
		return err
	}
	f.lacks(it, it.Position, o.decision.IntentID, tenant, user)
	if err := f.inputs.completeFacts(o, &o.inputs); err != nil {
		return err
	}
	switch o.decision.Verdict {
	case intents.Deny:
		f.noteRequesters(j, view)
		return f.refused(j, view)
	case intents.Allow, intents.Hold:
	default:
		return fmt.Errorf("unknown verdict %q", o.decision.Verdict)
	}
	if o.hidden() && (routers(o.decision) && !o.kept() || o.decision.Verdict == intents.Hold) {
		return errors.New("an intent that others rest on is withheld")
	}
	key, err := f.takeKey(it)
	if err != nil {
		return err
	}
	f.inputs.noteIntent(o)
	x := &open{
		intentID: o.decision.IntentID, tenant: tenant, user: user, key: key, task: j.task,
		typ: o.body.Intent.Type, dispatched: o.decision.Verdict == intents.Allow && !routers(o.decision),
	}
	x.ofNode = j.task != nil && j.task.NodesOwn(o.body.Intent.Type, o.decision.Executor)
	if o.body.Intent.Type == "write_memory" {
		x.memory = tenant + "/" + o.ctx.TaskID
	}
	f.intents[it.Position] = x
	if o.decision.Verdict == intents.Hold {
		if err := f.hold(it, x); err != nil {
			return err
		}
	}
	f.noteRequesters(j, view)
	if err := f.checkSources(j, view, x); err != nil {
		j.unfit = err
	}
	return f.accept(j, view)
}

// noteRequesters records the requesters of an intent that waits or is refused, including its editors.
func (f *applier) noteRequesters(j *job, view *state.View) {
	if j.intent.decision.Verdict == intents.Allow || j.intent.hidden() {
		return
	}
	if o, err := j.asIntent(); err == nil {
		j.requesters = new(view.Requesters(&o))
	}
}

// accept applies an accepted intent.
func (f *applier) accept(j *job, view *state.View) error {
	o, err := j.asIntent()
	if err != nil {
		return err
	}
	if routers(o.Decision) {
		f.judge(j, view, o)
		if j.task != nil && j.task.NodesOwn(o.Type, o.Decision.Executor) && j.unfit == nil {
			if err := f.ofNode(j, view, o); err != nil {
				j.unfit = fmt.Errorf("accepted although %w", err)
			}
		}
		if o.Decision.Verdict == intents.Allow {
			if err := f.beside(j.item); err != nil {
				return fmt.Errorf("%s: %w", o.Type, err)
			}
		}
	} else if err := cmp.Or(f.checkRepeat(view, o), f.ofNode(j, view, o), f.unknownOutcome(view, &o)); err != nil {
		j.unfit = fmt.Errorf("accepted although %w", err)
	}
	if err := f.stood(j, view, o, j.intent.inputs); err != nil {
		j.unfit = err
	}
	f.follow(j, o.Type, f.add(state.Content{Position: j.Position, At: j.At, Intent: &o}))
	return nil
}

// stood: an intent that names a standing approval was let through by one that counts for it.
func (f *applier) stood(j *job, view *state.View, o state.Intent, in intents.DecisionInputs) error {
	if in.Standing == "" && len(in.Approvals) == 0 {
		return nil
	}
	if o.Decision.Verdict != intents.Allow || in.Standing == "" {
		return errors.New("it names approvals, and no standing one lets it through")
	}
	yes, name, seen := view.Standing(&o, in.Standing, nil)
	if !f.whole || o.Erased {
		return nil
	}
	if j.seen = seen; name == "" || !reflect.DeepEqual(in.Approvals, []intents.Approval{yes}) {
		return errors.New("it names a standing approval that does not count for it")
	}
	return nil
}

// takeKey gives an intent its idempotency key. Its HMAC cannot be made without the secret of the log:
// what equal intents name has equal keys, and nothing else has them.
func (f *applier) takeKey(it *item) (key storage.Key, err error) {
	key, ok := storage.ParseKey(it.intent.decision.Key)
	if !ok {
		return key, errors.New("the decision names no idempotency key")
	}
	named := it.intent.named()
	h, there := f.idempotency[key]
	if was, known := f.named[named]; known && was != key {
		return key, fmt.Errorf("the decision names another idempotency key than that of record %d, and the intents name the same", f.idempotency[was].position)
	}
	if there && named != (storage.Key{}) && h.named != (storage.Key{}) && h.named != named {
		return key, fmt.Errorf("the decision names the idempotency key of record %d, and the intents name another", h.position)
	}
	if f.whole && there && !h.free(f.latest) {
		return key, fmt.Errorf("a second intent under the idempotency key of record %d", h.position)
	}
	f.idempotency[key] = holder{position: it.Position, named: named}
	if named != (storage.Key{}) {
		f.named[named] = key
	}
	return key, nil
}

// versions: the policy that decided is in force, or was for a refusal.
func (f *applier) versions(it *item, view *state.View) error {
	d := it.intent.decision
	if d.Catalog != f.state.CatalogDigest() {
		return errors.New("decided under a catalog that is not in force")
	}
	if d.PolicyDigest != view.PolicyDigest() && !(d.Verdict == intents.Deny && f.policies[d.PolicyDigest]) {
		return fmt.Errorf("decided by policy %s, which is not in force", d.PolicyDigest)
	}
	return nil
}

// judge checks whether the state allows an intent of the router. Where the bundle
// does not show the whole state only a violation that any state would show is a finding.
func (f *applier) judge(j *job, view *state.View, o state.Intent) {
	_, err := view.Judge(o, nil)
	j.unjudged = !f.whole
	if err == nil {
		return
	}
	if intents.CodeOf(err) == intents.MalformedArgs && (!f.whole && view.HasReadIntents() || f.unshown(o, err)) {
		j.unjudged = true
		return
	}
	j.unfit = fmt.Errorf("accepted although %w", err)
	if o.Type == state.TypeApprove && intents.CodeOf(err) == intents.GrantInvalid {
		j.unfit = errors.New("approved under a grant that does not show that the approver was there")
	}
}

// checkRepeat judges an intent of a plan that may act only once. Erased arguments of an
// earlier one are taken as empty.
func (f *applier) checkRepeat(view *state.View, o state.Intent) error {
	row, _ := catalog.Builtin().Lookup(o.Type)
	once := o.Decision.Effect == string(catalog.Once)
	if !f.whole || !once && row.Effect != catalog.EffectPin || o.Erased || o.Context.PlanID == "" || string(o.Args) == "{}" {
		return nil
	}
	return view.CheckRepeat(o.Tenant, o.Signer, o.Type, o.Args, o.Context, once)
}

// unknownOutcome: an intent waits for the outcome of an earlier one exactly where that is
// unknown.
func (f *applier) unknownOutcome(view *state.View, o *state.Intent) error {
	if unknown := view.UnknownOutcome(o) != nil; f.whole && unknown != o.Decision.Hold.AwaitsOutcome() {
		return fmt.Errorf("nobody knows what became of an earlier call of its skill: %t, and it waits for that: %t", unknown, !unknown)
	}
	return nil
}

// unshown reports that a refusal depends on unknown state even if a bundle has every
// record: the types of a catalog that is not ours, or the key of a memory that was
// erased.
func (f *applier) unshown(o state.Intent, err error) bool {
	switch o.Type {
	case state.TypeAdminPut:
		var x *intents.Refusal
		return o.Decision.Catalog != catalog.Builtin().Digest() && errors.As(err, &x) &&
			(strings.HasPrefix(x.Pointer, "/intent/args/role/") || strings.HasPrefix(x.Pointer, "/intent/args/data/"))
	case state.TypeApprove: // of an edit
		var x *intents.Refusal
		return o.Decision.Catalog != catalog.Builtin().Digest() && errors.As(err, &x) && len(x.Violations) > 0
	case "step.finish":
		a, err := unmarshal[catalog.StepFinish](o.Args)
		return err == nil && f.erased[o.Tenant+"/"+a.TaskID]
	default:
		return false
	}
}

// follow makes a finding of what the state could not apply, unless there is one already, or
// the bundle need not have the subject of the intent.
func (f *applier) follow(j *job, typ string, err error) {
	if !f.whole && (typ == state.TypeApprove || typ == state.TypeResolve) || j.unfit != nil || err == nil {
		return
	}
	j.unfit = fmt.Errorf("%s: %w", typ, err)
}

// refused judges a refused intent of the router again, if it was decided on the
// state as it is here. That a breaker refused one is believed where there may be a breaker.
func (f *applier) refused(j *job, view *state.View) error {
	o := j.intent
	so, err := j.asIntent()
	if err != nil {
		return nil //nolint:nilerr // nothing is made of it
	}
	if o.decision.Code == intents.DispatchUnavailable && !so.HasBreaker() {
		return errors.New("refused for its skill server, and it calls none")
	}
	if !f.whole || o.hidden() || o.decision.Directory != j.Position-1 || !state.Has(so.Type) {
		return nil
	}
	if _, err = view.Judge(so, nil); err != nil {
		j.refusal = intents.CodeOf(err)
	}
	return nil
}

// beside applies the effects of an accepted router intent outside the state.
func (f *applier) beside(it *item) error {
	o := it.intent
	switch o.body.Intent.Type {
	case state.TypePolicyPush:
		a, err := unmarshal[catalog.PolicyPush](o.body.Intent.Args)
		if err != nil {
			return err
		}
		if _, revision := f.state.PolicyPushed(); a.Revision <= revision {
			return fmt.Errorf("pushes policy revision %d after revision %d", a.Revision, revision)
		}
		f.inForce(a.Digest)
	case state.TypeRegistryPush:
		a, err := unmarshal[catalog.RegistryPush](o.body.Intent.Args)
		if err != nil || a.Bundle == "" && (len(o.inputs.Scopes) == 0 || f.content == nil) {
			return err
		}
		if err = state.CheckScopes(a, o.inputs.Scopes, f.content); errors.Is(err, storage.ErrNotFound) {
			return nil // the auditor does not have the content
		}
		return err
	case state.TypeResolve:
		a, err := unmarshal[catalog.IntentResolve](o.body.Intent.Args)
		if key, unknown := f.unknown[a.IntentID]; err == nil && unknown {
			delete(f.unknown, a.IntentID)
			if a.Status == string(intents.Failed) { // it may be sent again
				f.freed(key)
			}
		}
		return err
	case state.TypeErase:
		return f.erase(it)
	case state.TypeUserErase:
		return f.eraseUser(it)
	}
	return nil
}

// asIntent returns an intent as the state takes it. Of one that executors carry out the state retains no
// grant, which is not read.
func (it *item) asIntent() (state.Intent, error) {
	o := it.intent
	grant, dispatched := o.grant, !routers(o.decision) && o.decision.Verdict == intents.Allow
	if dispatched {
		grant = ""
	}
	out, err := state.Recorded(it.Record, o.body, o.decision, o.inputs, grant)
	if dispatched && o.decision.Effect == string(catalog.Once) {
		out.Args = bytes.Clone(out.Args) // the plan retains them, not their line
	}
	return out, err
}
