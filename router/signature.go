package router

import (
	"context"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/state"
)

// verified is an intent that passed stages 1 and 2 on a view of the state, at a time. What they read,
// such as the key and the grant, are reads of a decision on that view.
type verified struct {
	env  *intents.Envelope
	view *state.View
	now  time.Time
}

// verify runs stages 1 and 2, form and signature, once for each submission. Rates are metered as
// soon as the signer is known: no later refusal may leave a record before that.
func (r *Router) verify(ctx context.Context, raw []byte) (in verified, err error) {
	u, err := intents.Parse(raw) // 1
	if err != nil {
		return verified{}, err
	}
	began := time.Now()
	in.view, in.now = r.state.View(), r.now()
	in.env, err = checkRevocation(in.view, func() (*intents.Envelope, error) { return u.Verify(r.verifier(in.view, in.now)) }) // 2
	r.took(ctx, "signature", began)
	if err != nil {
		return verified{}, err
	}
	if err := r.rate(in.env); err != nil {
		return verified{}, signed(in.env, err)
	}
	// A refusal of them may not be recorded: no auditor has the texts.
	if err := in.env.Transient().Match(state.TransientDigests(in.env.Type(), in.env.Args())); err != nil {
		return verified{}, signed(in.env, err)
	}
	return in, nil
}

// reverify checks again, on the state of now, what may have changed since a signature was verified: its
// key, the grant and the grant's key.
func (r *Router) reverify(env *intents.Envelope) (in verified, err error) {
	in.view, in.now = r.state.View(), r.now()
	in.env, err = checkRevocation(in.view, func() (*intents.Envelope, error) { return env.Reverify(r.verifier(in.view, in.now)) })
	return in, err
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
