package router

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
)

// duplicate is an intent that was accepted before, with its progress.
type duplicate struct {
	holder      storage.Holder
	decision    intents.Decision
	fingerprint string           // empty: the envelope was erased
	outcome     *intents.Outcome // nil until done
	digests     recordedRef
}

// idempotency is stage 5. A duplicate continues to stage 6 and is then answered as the first was,
// whatever has ended since. Any other intent must have a live task and be a legal transition in the
// state.
func (r *Router) idempotency(ctx context.Context, d *decision) error {
	pr := d.env.Principal()
	d.key = r.keys.Key(pr.Tenant, pr.UserID, d.env.Type(), d.env.Constraints().IdempotencyKey)
	if taken, err := r.isDuplicate(ctx, d); taken || err != nil {
		return err
	}
	refusal := r.legal(ctx, d)
	if refusal == nil {
		return nil
	}
	// The same intent may have been committed between the lookup and the view of the state: then
	// its own effect is what makes it illegal now.
	if taken, err := r.isDuplicate(ctx, d); taken || err != nil {
		return err
	}
	return refusal
}

// isDuplicate reports whether an equal intent holds the key, which makes this one its duplicate. If
// another intent holds the key, the error refuses this one.
func (r *Router) isDuplicate(ctx context.Context, d *decision) (bool, error) {
	dup, err := r.lookup(ctx, d.key)
	if err != nil || dup == nil {
		return false, err
	}
	if x := dup.conflict(d.env); x != nil {
		return true, x
	}
	d.view.AddIntentRead(dup.decision.IntentID) // intent.resolve may free its key
	if dup.freed() {
		d.holder = dup.holder.Position
		return false, nil
	}
	d.duplicate = dup
	return true, nil
}

// conflict refuses an intent that asks for something else than the one that holds its key: another
// intent_id, and another fingerprint than that of the recorded envelope. What an erased envelope asked
// for is not known, so only the same signed bytes repeat it.
func (d *duplicate) conflict(env *intents.Envelope) *intents.Refusal {
	if d.decision.IntentID == env.ID() || d.fingerprint != "" && d.fingerprint == env.Fingerprint() {
		return nil
	}
	x := intents.Refuse(intents.ConflictIdempotency, "/constraints/idempotency_key", "the key belongs to "+d.decision.IntentID)
	if d.fingerprint == "" {
		x.Reason += ", which was erased"
		x.Hint = "use another idempotency key: what the erased intent asked for is not known any more, so only its own signed bytes repeat it"
	}
	return x
}

// freed: a retryable failure gives the key back to the same request.
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
	if _, erased := rec.Erased[storage.PartEnvelope]; !erased {
		body, err := rec.Body()
		if err != nil {
			return nil, fmt.Errorf("record %d: %w", rec.Position, err)
		}
		d.fingerprint = body.Fingerprint()
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

// keysLooked is how many of the last records are looked through for a key that proves the secret.
const keysLooked = 1024

// checkKeySecret refuses a secret that is not the one which the last accepted intent has its key
// under: what was accepted before would be carried out again.
func (r *Router) checkKeySecret(ctx context.Context) error {
	next := r.cfg.Records.Next()
	for at := next - 1; at >= max(0, next-keysLooked); at-- {
		rec, err := r.cfg.Records.Get(ctx, at)
		if err != nil {
			return err
		}
		if _, shown := rec.Parts[storage.PartEnvelope]; rec.Kind != storage.KindIntent || !shown {
			continue
		}
		d, err := intents.ReadDecision(rec.Parts[storage.PartDecision])
		if err != nil || d.Key == "" {
			continue // refused
		}
		b, err := rec.Body()
		if err != nil {
			return fmt.Errorf("record %d: %w", at, err)
		}
		if d.Key != r.keys.Key(b.Actor.Tenant, b.Actor.UserID, b.Intent.Type, b.Constraints.IdempotencyKey).String() {
			return errors.New("the secret of idempotency keys is not the one that this log was written with: put the right keys/tags back (in a cell: the file idempotency of the router's keys)")
		}
		return nil
	}
	return nil
}

// decisionOf returns a record's decision, as it was answered.
func decisionOf(rec storage.Record) (intents.Decision, error) {
	d, err := intents.ReadDecision(rec.Parts[storage.PartDecision])
	if err != nil {
		return d, fmt.Errorf("record %d: %w", rec.Position, err)
	}
	d.Key = "" // the record's own
	return d, nil
}

// legal requires a live task and a transition that the state allows.
func (r *Router) legal(ctx context.Context, d *decision) error {
	if t := d.task; t != nil && t.Closed(d.now) {
		if t.Ended != "" {
			return intents.Refuse(intents.KeyRevoked, "/sig", "the task has ended: "+t.Ended)
		}
		return intents.Refuse(intents.KeyRevoked, "/sig", "the task is past its deadline")
	}
	if err := r.effectOf(d); err != nil {
		return err
	}
	if err := r.mayAct(d); err != nil {
		return err
	}
	// This also holds if the pin has another effect by now: an intent that had the effect once was
	// executed.
	once := d.Effect == string(catalog.Once)
	if (once || d.row.Effect == catalog.EffectPin || d.ofNode()) && d.env.Context().PlanID != "" {
		if err := d.view.CheckRepeat(d.env.Principal().Tenant, d.env.Signer().Role, d.env.Type(), d.env.Args(), d.env.Context(), once); err != nil {
			return err
		}
	}
	if d.row.Executor != catalog.ExecutorRouter {
		return nil
	}
	return r.transition(ctx, d)
}

// transition judges an intent of the router on the state and determines its effect.
func (r *Router) transition(ctx context.Context, d *decision) error {
	so := d.intent()
	so.OpenAgents = r.breakers.Open(so.Tenant)
	so.Released, so.Approvals = d.release != nil, d.inputs.Approvals
	if d.release != nil {
		so.Patch = d.inputs.Patch
	}
	if d.env.Type() == state.TypeRegistryPush {
		if err := r.readRegistry(ctx, d, &so); err != nil {
			return err
		}
	}
	if err := r.readRun(ctx, d, &so); err != nil {
		return err
	}
	if err := d.readNext(&so); err != nil {
		return err
	}
	e, err := d.view.Judge(so, r.cfg.Catalog)
	d.inputs.Budget, d.inputs.Edges, d.inputs.Patch = d.view.Budget, d.view.Edges, d.view.Patch
	d.inputs.OpenAgents = d.view.OpenAgents
	if err != nil {
		return err
	}
	d.result = &e
	return r.readAgents(ctx, d.result)
}

// effectOf takes a skill's effect from its approved pin.
func (r *Router) effectOf(d *decision) error {
	if d.row.Executor != "skills" {
		return nil
	}
	skill := d.env.StringArg("skill")
	if skill == "" {
		return nil // skill.find
	}
	pin, ok, err := d.view.SkillOf(d.task, d.env.Principal().Tenant, skill)
	if err != nil {
		return err
	}
	if !ok {
		if d.row.Effect == catalog.EffectPin {
			d.Effect = string(catalog.Once) // unknown is the worst; policy denies it
		}
		return nil
	}
	d.pin = &pin
	if d.row.Effect == catalog.EffectPin {
		d.Effect = pin.Effect
	}
	return nil
}

// argsOf decodes arguments that stage 3 has validated against their schema.
func argsOf[T any](e *intents.Envelope) (args T, err error) {
	return args, json.Unmarshal(e.Args(), &args)
}

func illegal(pointer, reason string) error {
	return intents.Refuse(intents.MalformedArgs, pointer, reason)
}
