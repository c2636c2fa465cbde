package intents

import (
	"errors"
	"testing"
	"time"
)

// TestReverify: everything but the signature is checked again; the signature too, if the key differs or nothing was
// verified before.
func TestReverify(t *testing.T) {
	_, _, u := testEnvelope(t)
	e, err := u.Verify(testVerifier())
	if err != nil {
		t.Fatal(err)
	}
	of := func(change func(*Key)) Verifier {
		v := testVerifier()
		keys := v.Keys
		v.Keys = KeysFunc(func(kid string) (Key, error) {
			k, err := keys.Key(kid)
			if kid == vTask.KID {
				change(&k)
			}
			return k, err
		})
		return v
	}
	for name, c := range map[string]struct {
		by   Verifier
		code Code
	}{
		"nothing has changed":   {testVerifier(), OK},
		"another public key":    {of(func(k *Key) { k.Public = vManager.VerificationKey().Public }), SignatureInvalid},
		"for raw signatures":    {of(func(k *Key) { k.Raw = true }), SignatureInvalid},
		"the key is past":       {of(func(k *Key) { k.NotAfter = vectorNow.Add(-time.Second) }), KeyRevoked},
		"a key of an operator":  {of(func(k *Key) { k.Role = RoleOperator }), GrantInvalid},
		"no such key":           {Verifier{Keys: ring(), Origin: vectorOrigin, Now: vectorNow}, KeyUnknown},
		"another log":           {Verifier{Keys: testVerifier().Keys, Origin: "other", Now: vectorNow}, SignatureInvalid},
		"the grant has expired": {Verifier{Keys: testVerifier().Keys, Origin: vectorOrigin, Now: vectorNow.Add(1000 * time.Hour)}, GrantInvalid},
	} {
		again, err := e.Reverify(c.by)
		if CodeOf(err) != c.code {
			t.Errorf("%s: %v, want %s", name, err, c.code)
		}
		if err == nil && (again.ID() != e.ID() || again.Signer().KID != e.Signer().KID || again.Grant() == nil) {
			t.Errorf("%s: %+v", name, again)
		}
	}
	none := of(func(k *Key) { k.Public = nil })
	if _, err := u.AsRecorded().Reverify(none); CodeOf(err) != SignatureInvalid {
		t.Errorf("nothing was verified, by a key that verifies nothing: %v", err)
	}
	bad := *u
	bad.signature[0]++
	if _, err := bad.AsRecorded().Reverify(testVerifier()); !errors.As(err, new(*Refusal)) {
		t.Errorf("nothing was verified, and the signature is bad: %v", err)
	}
}
