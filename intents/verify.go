package intents

import (
	"crypto/ed25519"
	"slices"
	"time"
)

// Verifier holds the keys, the log origin and the time that envelopes are verified by.
type Verifier struct {
	Keys   Keys
	Origin string // log origin: audience of intents and grants
	// Now judges the expiry of keys and grants; zero leaves it out, for intents
	// that were accepted before and are judged as of their own position.
	Now time.Time
	// Grants, if not nil, saves verifying a grant that was verified before.
	Grants *Grants
}

// Verify turns an unverified envelope into an Envelope: we choose the key, the
// algorithm is pinned to it, the grant is verified, and the actor must claim no
// more than the grant. The error is a *Refusal.
func (u *Unverified) Verify(v Verifier) (*Envelope, error) {
	key, err := v.Keys.Key(u.kid)
	if err != nil {
		return nil, err
	}
	if err := u.signedBy(key); err != nil {
		return nil, err
	}
	return u.under(key, v, verifiedGrant{})
}

// Reverify verifies an envelope again, by other keys and at another time: all that Verify does except the
// signatures of envelope and grant: one is not computed again if its key is the same.
func (e *Envelope) Reverify(v Verifier) (*Envelope, error) {
	key, err := v.Keys.Key(e.u.kid)
	if err != nil {
		return nil, err
	}
	if len(e.signer.Public) != ed25519.PublicKeySize || !key.Public.Equal(e.signer.Public) || key.Raw != e.signer.Raw {
		return e.u.Verify(v)
	}
	return e.u.under(key, v, e.granted)
}

func (u *Unverified) signedBy(key Key) error {
	verifies := key.verifies
	switch {
	case key.Raw && !u.raw():
		return Refuse(SignatureInvalid, "/sig", "the record of this key says raw: sign with ed25519:<base64> (writ intent sign --raw)")
	case u.raw() && !key.Raw:
		return Refuse(SignatureInvalid, "/sig", "the record of this key allows no raw signature: sign as a JWS, or with a key of writ admin keys new --raw")
	case key.Raw:
		verifies = key.verifiesRaw
	}
	if !verifies(u.input, u.signature[:]) {
		return Refuse(SignatureInvalid, "/sig", "signature does not match the canonical bytes")
	}
	return nil
}

// under returns the envelope under the key that signed it, if the key may still sign and the actor claims no more than the grant.
func (u *Unverified) under(key Key, v Verifier, granted verifiedGrant) (*Envelope, error) {
	if !v.Now.IsZero() && !key.NotAfter.IsZero() && v.Now.After(key.NotAfter) {
		return nil, Refuse(KeyRevoked, "/sig", "key is past its not_after")
	}
	if u.body.Constraints.Audience != v.Origin {
		return nil, Refuse(SignatureInvalid, "/constraints/audience", "intent is for another log")
	}
	e := &Envelope{u: u, signer: key, args: u.args, granted: granted}
	if err := e.setPrincipal(v); err != nil {
		return nil, err
	}
	return e, nil
}

// setPrincipal takes the actor from the grant, or from an operator's key.
func (e *Envelope) setPrincipal(v Verifier) error {
	a, c := e.u.body.Actor, e.Context()
	if e.signer.Role == RoleOperator {
		if a.Grant != "" {
			x := Refuse(GrantInvalid, "/actor/grant", "an operator's intent carries no grant")
			x.Hint = "leave it out, as writ intent new TYPE --operator does, and sign again"
			return x
		}
		if a.UserID != e.signer.Subject || a.Tenant != e.signer.Tenant {
			return Refuse(RBACForbidden, "/actor", "actor is not the operator whose key signed")
		}
		e.principal = Principal{UserID: a.UserID, Tenant: a.Tenant}
		return nil
	}
	if a.Grant == "" {
		return Refuse(GrantInvalid, "/actor/grant", "intent carries no grant")
	}
	row, err := v.Grants.open(a.Grant, v.Origin, v.Keys, v.Now, e.granted)
	if err != nil {
		return err
	}
	g := row.grant
	switch {
	case a.UserID != g.Subject || a.Tenant != g.Tenant:
		return Refuse(RBACForbidden, "/actor", "actor is not the one whom the grant names")
	case !Subset(a.Roles, g.Roles):
		return Refuse(RBACForbidden, "/actor/roles", "actor claims roles that the grant does not give")
	case c.SessionID != g.Session || c.TurnID != g.Turn:
		return Refuse(GrantInvalid, "/context", "grant is for another session or turn")
	case g.Reads():
		x := Refuse(GrantInvalid, "/actor/grant", "a grant for reading serves no intent")
		x.Hint = "sign under the member grant of POST /v1/grants"
		return x
	case !g.Serves(c):
		return Refuse(GrantInvalid, "/actor/grant", "standing grant is for other work")
	}
	e.granted = row
	e.principal = Principal{UserID: g.Subject, Tenant: g.Tenant, Roles: g.Roles, Session: g.Session}
	return nil
}

// Subset reports whether all of a are in b.
func Subset(a, b []string) bool {
	for _, x := range a {
		if !slices.Contains(b, x) {
			return false
		}
	}
	return true
}
