package audit

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
)

// takeOrder says what was in force for an order and, if it was accepted, folds it:
// one of the router is judged before. What the worker finds wrong with it later makes
// the bundle bad at its position all the same.
func (f *fold) takeOrder(it *item, j *job) error {
	o := it.order
	tenant, user := o.body.Actor.Tenant, o.body.Actor.UserID
	view := f.state.View()
	j.dir, j.rules, j.revoked = f.generation(o.decision.Directory), view.Rules(), view.Revoked(tenant, user)
	j.task = taskOf(view, o.kid())
	if o.decision.Directory >= it.Position {
		return errors.New("the decision rests on records that come after it")
	}
	if err := f.versions(it, view); err != nil {
		return err
	}
	f.lacks(it, it.Position, o.decision.IntentID, tenant)
	if err := f.inputs.given(o, &o.facts); err != nil {
		return err
	}
	switch o.decision.Verdict {
	case intents.Deny:
		f.askedFor(j, view)
		f.refused(j, view)
		return nil
	case intents.Allow, intents.Hold:
	default:
		return fmt.Errorf("unknown verdict %q", o.decision.Verdict)
	}
	if o.hidden() && (routers(o.decision) && !o.kept() || o.decision.Verdict == intents.Hold) {
		return errors.New("an order that others rest on is withheld")
	}
	key, err := o.key()
	if err != nil {
		return err
	}
	if h, taken := f.taken[key]; f.whole && taken && !h.free(f.latest) {
		return fmt.Errorf("a second order under the idempotency key of record %d", h.position)
	}
	f.taken[key] = holder{position: it.Position}
	f.inputs.noteOrder(o)
	x := &open{
		receipted: receiptedOf(it, it.leaf.RecordDigest), key: key, verdict: o.decision.Verdict, task: j.task, mark: o.facts.Breaker,
	}
	x.ofNode = j.task != nil && j.task.NodesOwn(o.body.Intent.Type, o.decision.Executor)
	if o.body.Intent.Type == "write_memory" {
		x.memory = tenant + "/" + o.ctx.TaskID
	}
	f.orders[it.Position] = x
	if o.decision.Verdict == intents.Hold {
		if err := f.hold(it, x); err != nil {
			return err
		}
	}
	f.askedFor(j, view)
	if err := f.accept(j, view); err != nil || o.decision.Verdict != intents.Hold {
		return err
	}
	h, _ := f.state.View().Hold(tenant, o.decision.IntentID)
	x.last = h.Edit
	return nil
}

// askedFor says who asked for an order that waits or is refused: who has edited it, too.
func (f *fold) askedFor(j *job, view *state.View) {
	if j.order.decision.Verdict == intents.Allow || j.order.hidden() {
		return
	}
	if o, err := j.asOrder(); err == nil {
		j.asked = new(view.Asked(&o))
	}
}

// accept folds an accepted order.
func (f *fold) accept(j *job, view *state.View) error {
	o, err := j.asOrder()
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
	} else if err := cmp.Or(f.again(view, o), f.ofNode(j, view, o), f.unsettled(view, &o), f.marked(view, &o, o.Decision.Verdict)); err != nil {
		j.unfit = fmt.Errorf("accepted although %w", err)
	}
	f.follow(j, o.Type, f.add(state.Content{Position: j.Position, At: j.At, Order: &o}))
	return nil
}

// versions: the policy that decided is in force, or was for a refusal, or a
// record soon says so, since one is put in force before its record.
func (f *fold) versions(it *item, view *state.View) error {
	d := it.order.decision
	if d.Catalog != f.state.CatalogDigest() {
		return errors.New("decided under a catalog that is not in force")
	}
	if d.PolicyDigest != view.PolicyDigest() && !(d.Verdict == intents.Deny && f.policies[d.PolicyDigest]) {
		f.decidedBy(d.PolicyDigest, it.Position)
	}
	return nil
}

// judge says of an order of the router whether the state allows it. Where the bundle
// does not show the whole state only what holds in spite of that is a finding.
func (f *fold) judge(j *job, view *state.View, o state.Order) {
	_, err := view.Judge(o, nil)
	j.unjudged = !f.whole
	if err == nil {
		return
	}
	if intents.CodeOf(err) == intents.MalformedArgs && (!f.whole && view.ReliesOnOrders() || f.unshown(o, err)) {
		j.unjudged = true
		return
	}
	j.unfit = fmt.Errorf("accepted although %w", err)
	if o.Type == state.TypeApprove && intents.CodeOf(err) == intents.GrantInvalid {
		j.unfit = errors.New("approved under a grant that does not show that the approver was there")
	}
}

// again judges an order of a plan that may act only once. What was erased of an
// earlier one is not known, and stands as empty arguments. Under earlier rules, what an
// order rests on that says it is wanted again may have changed since its decision.
func (f *fold) again(view *state.View, o state.Order) error {
	row, _ := catalog.Builtin().Lookup(o.Type)
	once := o.Decision.Effect == string(catalog.Once)
	if !f.whole || !once && row.Effect != catalog.EffectPin || o.Erased || o.Context.PlanID == "" || string(o.Args) == "{}" {
		return nil
	}
	if view.Rules() < intents.RulesAgents && o.Context.Occurrence != 0 && o.Decision.Directory < o.Position-1 {
		return nil
	}
	return view.Again(o.Tenant, o.Signer, o.Type, o.Args, o.Context, once)
}

// unsettled: an order waits for what became of an earlier one where nobody knows that,
// and nowhere else.
func (f *fold) unsettled(view *state.View, o *state.Order) error {
	if unknown := view.Unsettled(o) != nil; f.whole && unknown != o.Decision.Hold.Unsettled() {
		return fmt.Errorf("nobody knows what became of an earlier call of its skill: %t, and it waits for that: %t", unknown, !unknown)
	}
	return nil
}

// unshown says that a refusal rests on what is not known even if a bundle has every
// record: the types of a catalog that is not ours, or the key of a memory that was
// erased.
func (f *fold) unshown(o state.Order, err error) bool {
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

// follow makes of what the state could not fold a finding, unless there is one, or
// the bundle need not have what the order is about.
func (f *fold) follow(j *job, typ string, err error) {
	if !f.whole && (typ == state.TypeApprove || typ == state.TypeResolve) || j.unfit != nil || err == nil {
		return
	}
	j.unfit = fmt.Errorf("%s: %w", typ, err)
}

// refused judges a refused order of the router again, where it was decided on the
// state as it is here.
func (f *fold) refused(j *job, view *state.View) {
	o := j.order
	if !f.whole || o.hidden() || o.decision.Directory != j.Position-1 || !state.Has(o.body.Intent.Type) {
		return
	}
	if so, err := j.asOrder(); err == nil {
		if _, err = view.Judge(so, nil); err != nil {
			j.refusal = intents.CodeOf(err)
		}
	}
}

// beside is what an accepted order of the router changes beside the state.
func (f *fold) beside(it *item) error {
	o := it.order
	switch o.body.Intent.Type {
	case state.TypeApprove:
		a, err := unmarshal[catalog.Approve](o.body.Intent.Args)
		h, waits := f.state.View().HeldFor(o.body.Actor.Tenant, a)
		switch held := f.orders[h.Recorded]; {
		case err != nil || !waits || held == nil:
			return err
		case a.Decision == catalog.DecisionApprove:
			held.last = o.decision.IntentID
		case a.Decision == catalog.DecisionEdit:
			held.edited = true
		default:
			held.refused = true
		}
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
		if err != nil || a.Bundle == "" && (len(o.facts.Scopes) == 0 || f.content == nil) {
			return err
		}
		if err = state.CheckScopes(f.state.View().Rules(), a, o.facts.Scopes, f.content); errors.Is(err, storage.ErrNotFound) {
			return nil // the auditor does not have the content
		}
		return err
	case state.TypeResolve:
		a, err := unmarshal[catalog.OrderResolve](o.body.Intent.Args)
		if key, unknown := f.unknown[a.IntentID]; err == nil && unknown {
			delete(f.unknown, a.IntentID)
			if a.Status == string(intents.Failed) { // it may be sent again
				delete(f.taken, key)
			}
		}
		return err
	case state.TypeErase:
		return f.erase(it)
	}
	return nil
}

// asOrder is an order as the state takes it. Of one that executors carry out only what
// the state keeps is read.
func (it *item) asOrder() (state.Order, error) {
	o, f := it.order, it.order.facts
	out := state.Order{
		Type: o.body.Intent.Type, Args: o.body.Intent.Args, Context: o.ctx, Tenant: o.body.Actor.Tenant, User: o.body.Actor.UserID,
		TraceID: o.body.TraceID, Decision: o.decision, Erased: o.hidden(), Now: it.now, At: it.At, Position: it.Position, Recorded: it.Position, Budget: f.Budget, Breaker: f.Breaker,
		Edges: f.Edges, Patch: f.Patch, Signer: intents.Role(f.Signer.Role),
	}
	if f.Skill != nil {
		out.Skill = f.Skill.Name
	}
	if !routers(o.decision) && o.decision.Verdict == intents.Allow {
		if o.decision.Effect == string(catalog.Once) {
			out.Args = bytes.Clone(out.Args) // the plan keeps them, and not their line
		}
		return out, nil
	}
	out.Roles, out.KID = f.Roles, f.Signer.KID
	if raw, there := it.Parts[storage.PartReplay]; there {
		if err := json.Unmarshal(raw, &out.Replay); err != nil {
			return out, err
		}
	}
	out.Next, _ = time.Parse(time.RFC3339Nano, f.Next) // empty: there is none
	if len(f.Scopes) > 0 {
		if err := json.Unmarshal(f.Scopes, &out.Scopes); err != nil {
			return out, err
		}
	}
	if o.grant != "" {
		var g intents.Grant
		if err := intents.PeekClaims(o.grant, &g); err != nil { // its signature is a worker's to check
			return out, err
		}
		out.Grant = state.GrantOf(o.grant, &g)
	}
	return out, nil
}
