package router

import (
	"context"
	"encoding/json"
	"fmt"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
)

// duplicate is an order that was accepted before, as far as it has come.
type duplicate struct {
	holder   storage.Holder
	decision intents.Decision
	outcome  *intents.Outcome // nil until done
	digests  recordedRef
}

// idempotency is stage 5. A duplicate goes on to stage 6 and is then answered
// as the first was, whatever has ended since. Anything else must have a live
// task and be a legal move in the state.
func (r *Router) idempotency(ctx context.Context, o *order) error {
	pr := o.env.Principal()
	o.key = storage.OrderKey(pr.Tenant, pr.UserID, o.env.Type(), o.env.Constraints().IdempotencyKey)
	if taken, err := r.taken(ctx, o); taken || err != nil {
		return err
	}
	refusal := r.legal(ctx, o)
	if refusal == nil {
		return nil
	}
	// The same order may have been committed between the look-up and the view of the state:
	// then its own effect is what makes it illegal now.
	if taken, err := r.taken(ctx, o); taken || err != nil {
		return err
	}
	return refusal
}

// taken says whether the key is held by an equal order, whose duplicate this one
// then is; if another order holds it, the error refuses this one.
func (r *Router) taken(ctx context.Context, o *order) (bool, error) {
	dup, err := r.lookup(ctx, o.key)
	if err != nil || dup == nil {
		return false, err
	}
	if dup.decision.Fingerprint != o.decision.Fingerprint {
		return true, intents.Refuse(intents.ConflictIdempotency, "/constraints/idempotency_key", "the key belongs to "+dup.decision.IntentID)
	}
	o.view.RelyOnOrder(dup.decision.IntentID) // order.resolve may free its key
	if dup.freed() {
		o.holder = dup.holder.Position
		return false, nil
	}
	o.duplicate = dup
	return true, nil
}

// freed: a retryable failure gives the key back to the same fingerprint.
func (d *duplicate) freed() bool {
	return d.outcome != nil && d.outcome.Status == intents.Failed && d.outcome.Retryable
}

// lookup reads who holds a key, with decision and outcome.
func (r *Router) lookup(ctx context.Context, key storage.Key) (*duplicate, error) {
	h, found, err := r.cfg.Journal.Lookup(ctx, key)
	if err != nil || !found {
		return nil, err
	}
	return r.readDuplicate(ctx, h)
}

func (r *Router) readDuplicate(ctx context.Context, h storage.Holder) (*duplicate, error) {
	rec, err := r.cfg.Records.Get(ctx, h.Position)
	if err != nil {
		return nil, err
	}
	d := &duplicate{holder: h, digests: recordedRef{record: rec.Digest()}}
	if d.decision, err = decisionOf(rec); err != nil {
		return nil, err
	}
	if h.State == storage.StateDone {
		out, err := r.cfg.Records.Get(ctx, h.Outcome)
		if err != nil {
			return nil, err
		}
		ended, err := out.Outcome()
		if err != nil {
			return nil, fmt.Errorf("record %d: %w", h.Outcome, err)
		}
		d.outcome = &ended
		r.state.Resolve(h.Position, d.outcome)
		d.digests.outcome, d.digests.out = out.Digest(), d.outcome
	}
	return d, nil
}

// decisionOf a record, as it was answered.
func decisionOf(rec storage.Record) (intents.Decision, error) {
	d, err := intents.ReadDecision(rec.Parts[storage.PartDecision])
	if err != nil {
		return d, fmt.Errorf("record %d: %w", rec.Position, err)
	}
	d.Key = "" // the record's own
	return d, nil
}

// legal: a task that lives, and a move that the state allows.
func (r *Router) legal(ctx context.Context, o *order) error {
	if t := o.task; t != nil && t.Over(o.now) {
		if t.Ended != "" {
			return intents.Refuse(intents.KeyRevoked, "/sig", "the task has ended: "+t.Ended)
		}
		return intents.Refuse(intents.KeyRevoked, "/sig", "the task is past its deadline")
	}
	if err := r.effectOf(o); err != nil {
		return err
	}
	if err := r.mayAct(o); err != nil {
		return err
	}
	// Also if the pin has another effect by now: an order that had the effect once was carried out.
	once := o.decision.Effect == string(catalog.Once)
	if (once || o.row.Effect == catalog.EffectPin || o.ofNode()) && o.env.Context().PlanID != "" {
		if err := o.view.Again(o.env.Principal().Tenant, o.env.Signer().Role, o.env.Type(), o.env.Args(), o.env.Context(), once); err != nil {
			return err
		}
	}
	if o.row.Executor != catalog.ExecutorRouter {
		return nil
	}
	return r.move(ctx, o)
}

// move judges an order of the router on the state and says its effect.
func (r *Router) move(ctx context.Context, o *order) error {
	so := state.OrderOf(o.env, o.roles, o.now)
	so.Released, so.Approvals = o.released, o.facts.Approvals
	if o.released {
		so.Patch = o.facts.Patch
	}
	if o.env.Type() == state.TypeRegistryPush {
		if err := r.readRegistry(ctx, o, &so); err != nil {
			return err
		}
	}
	if err := r.readRun(ctx, o, &so); err != nil {
		return err
	}
	if err := o.readNext(&so); err != nil {
		return err
	}
	e, err := o.view.Judge(so, r.cfg.Catalog)
	o.facts.Budget, o.facts.Edges, o.facts.Patch = o.view.Budget, o.view.Edges, o.view.Patch
	if err != nil {
		return err
	}
	o.effect = &e
	return r.readAgents(ctx, o.effect)
}

// effectOf takes a skill's effect from its approved pin.
func (r *Router) effectOf(o *order) error {
	if o.row.Executor != "skills" {
		return nil
	}
	skill := o.env.StringArg("skill")
	if skill == "" {
		return nil // skill.find
	}
	pin, ok, err := o.view.SkillOf(o.task, o.env.Principal().Tenant, skill)
	if err != nil {
		return err
	}
	if !ok {
		if o.row.Effect == catalog.EffectPin {
			o.decision.Effect = string(catalog.Once) // unknown is the worst; policy denies it
		}
		return nil
	}
	o.pin = &pin
	if o.row.Effect == catalog.EffectPin {
		o.decision.Effect = pin.Effect
	}
	return nil
}

// argsOf decodes arguments that stage 3 has held to their schema.
func argsOf[T any](e *intents.Envelope) (args T, err error) {
	return args, json.Unmarshal(e.Args(), &args)
}

func illegal(pointer, reason string) error {
	return intents.Refuse(intents.MalformedArgs, pointer, reason)
}
