package intents

import (
	"slices"
	"time"
)

// Verifier says by which keys, for which log and at what time orders are verified.
type Verifier struct {
	Keys   Keys
	Origin string // log origin: audience of orders and grants
	// Now judges the expiry of keys and grants; zero leaves it out, for orders
	// that were accepted before and are judged as of their own position.
	Now time.Time
	// Grants, if not nil, saves verifying a grant that was verified before.
	Grants *Grants
}

// Verify makes an unverified order an Envelope: the key is chosen by us, the
// algorithm is pinned to it, the grant is verified, and the actor must say no
// more than the grant. The error is a *Refusal.
func (u *Unverified) Verify(v Verifier) (*Envelope, error) {
	key, err := v.Keys.Key(u.kid)
	if err != nil {
		return nil, err
	}
	verifies := key.verifies
	switch {
	case key.Raw && !u.raw():
		return nil, Refuse(SignatureInvalid, "/sig", "the record of this key says raw: sign with ed25519:<base64> (writ intent sign --raw)")
	case u.raw() && !key.Raw:
		return nil, Refuse(SignatureInvalid, "/sig", "the record of this key allows no raw signature: sign as a JWS, or with a key of writ keys new --raw")
	case key.Raw:
		verifies = key.verifiesRaw
	}
	if !verifies(u.input, u.signature[:]) {
		return nil, Refuse(SignatureInvalid, "/sig", "signature does not match the canonical bytes")
	}
	if !v.Now.IsZero() && !key.NotAfter.IsZero() && v.Now.After(key.NotAfter) {
		return nil, Refuse(KeyRevoked, "/sig", "key is past its not_after")
	}
	if u.body.Constraints.Audience != v.Origin {
		return nil, Refuse(SignatureInvalid, "/constraints/audience", "order is for another log")
	}
	issued, err := time.Parse(time.RFC3339Nano, u.body.Constraints.IssuedAt)
	if err != nil {
		return nil, Refuse(SchemaInvalid, "/constraints/issued_at", "not an RFC 3339 time")
	}
	e := &Envelope{u: u, signer: key, issued: issued, args: u.args}
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
			return Refuse(GrantInvalid, "/actor/grant", "an operator's order carries no grant")
		}
		if a.UserID != e.signer.Subject || a.Tenant != e.signer.Tenant {
			return Refuse(RBACForbidden, "/actor", "actor is not the operator whose key signed")
		}
		e.principal = Principal{UserID: a.UserID, Tenant: a.Tenant}
		return nil
	}
	if a.Grant == "" {
		return Refuse(GrantInvalid, "/actor/grant", "order carries no grant")
	}
	g, err := v.Grants.open(a.Grant, v.Origin, v.Keys, v.Now)
	if err != nil {
		return err
	}
	switch {
	case a.UserID != g.Subject || a.Tenant != g.Tenant:
		return Refuse(RBACForbidden, "/actor", "actor is not the one whom the grant names")
	case !subset(a.Roles, g.Roles):
		return Refuse(RBACForbidden, "/actor/roles", "actor claims roles that the grant does not give")
	case c.SessionID != g.Session || c.TurnID != g.Turn:
		return Refuse(GrantInvalid, "/context", "grant is for another session or turn")
	case !g.Serves(c):
		return Refuse(GrantInvalid, "/actor/grant", "standing grant is for other work")
	}
	e.grant = &g
	e.principal = Principal{UserID: g.Subject, Tenant: g.Tenant, Roles: g.Roles, Session: g.Session}
	return nil
}

func subset(a, b []string) bool {
	for _, x := range a {
		if !slices.Contains(b, x) {
			return false
		}
	}
	return true
}
