package router

import (
	"context"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/state"
)

// verify runs stages 1 and 2, form and signature, once for each submission. Rates are metered as
// soon as the signer is known: no later refusal may leave a record before that.
func (r *Router) verify(ctx context.Context, raw []byte) (env *intents.Envelope, err error) {
	u, err := intents.Parse(raw) // 1
	if err != nil {
		return nil, err
	}
	began := time.Now()
	v := r.state.View()
	env, err = checkRevocation(v, func() (*intents.Envelope, error) { return u.Verify(r.verifier(v, r.now())) }) // 2
	r.took(ctx, "signature", began)
	if err != nil {
		return nil, err
	}
	if err := r.rate(env); err != nil {
		return nil, signed(env, err)
	}
	// A refusal of them may not be recorded: no auditor has the texts.
	if err := env.Transient().Match(state.TransientDigests(env.Type(), env.Args())); err != nil {
		return nil, signed(env, err)
	}
	return env, nil
}

// reverify checks for a decision what may have changed since the signature was verified: its key,
// the grant and the grant's key. These are reads of the decision.
func (r *Router) reverify(v *state.View, env *intents.Envelope, now time.Time) (*intents.Envelope, error) {
	return checkRevocation(v, func() (*intents.Envelope, error) { return env.Reverify(r.verifier(v, now)) })
}

func (r *Router) verifier(v *state.View, now time.Time) intents.Verifier {
	return intents.Verifier{Keys: v, Origin: r.state.Origin(), Now: now, Grants: &r.grants}
}

// now in milliseconds, as records have it.
func (r *Router) now() time.Time { return r.cfg.Now().UTC().Truncate(time.Millisecond) }

// checkRevocation refuses a verified envelope whose grant was issued before its user's grants were
// revoked.
func checkRevocation(v *state.View, verify func() (*intents.Envelope, error)) (*intents.Envelope, error) {
	env, err := verify()
	if err != nil {
		return nil, err
	}
	return env, revoked(env, v)
}

// revoked refuses intents whose grant was issued before its user's grants were revoked.
func revoked(e *intents.Envelope, v *state.View) error {
	g := e.Grant()
	if g == nil {
		return nil
	}
	if before := v.RevokedBefore(g.Tenant, g.Subject); !before.IsZero() && time.Unix(g.IssuedAt, 0).Before(before) {
		return intents.Refuse(intents.GrantInvalid, "/actor/grant", "grant is revoked")
	}
	return nil
}

// signedError is a refusal of an intent whose signature is valid: the signer of a flood is known.
type signedError struct {
	error
	kid string
}

func (e *signedError) Unwrap() error { return e.error }

func signed(env *intents.Envelope, err error) error { return &signedError{err, env.Signer().KID} }
