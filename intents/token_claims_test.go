package intents

import (
	"maps"
	"testing"
)

// TestTokensAreComplete: every token that is signed over null, over nothing, or without one of the claims
// that it always has, is refused, whoever signed it.
func TestTokensAreComplete(t *testing.T) {
	keys := ring(vectorKeys()...)
	open := map[string]struct {
		by     Signer
		claims any
		open   func(token string) error
	}{
		TypTicket: {vRouter, Ticket{
			Actor: Principal{Tenant: "default", UserID: "ana"}, Attempt: 1, Deadline: vectorNow, Executor: "files", IntentID: Digest(nil), Issuer: vectorOrigin,
			PolicyDigest: Digest(nil), Position: 7, Type: "read_lines",
		}, func(token string) error { _, err := OpenTicket(token, keys); return err }},
		TypReceipt: {vRouter, Receipt{
			Code: OK, IntentID: Digest(nil), Issuer: vectorOrigin, PolicyDigest: Digest(nil), Position: 7, RecordDigest: Digest(nil), WithinSec: PromiseSeconds,
		}, func(token string) error { _, err := OpenReceipt(token, keys); return err }},
		TypKeySet: {vRoot, KeySet{Version: 1, Keys: []JWK{vRouter.VerificationKey().ToJWK()}}, func(token string) error {
			_, _, err := OpenKeySet(token, vRoot.Public())
			return err
		}},
		TypGrant: {vGateway, Grant{
			Act: Act{AMR: []string{"key"}, Client: "api"}, Audience: vectorOrigin, Expires: vectorNow.Unix() + 60, IssuedAt: vectorNow.Unix(), Issuer: vectorOrigin,
			ID: "g1", Roles: []string{"user"}, Subject: "ana", Tenant: "default",
		}, func(token string) error { _, err := OpenGrant(token, vectorOrigin, keys, vectorNow); return err }},
	}
	for typ, paper := range open {
		signed := func(claims any) error {
			token, err := SignCompact(paper.by, typ, claims)
			if err != nil {
				t.Fatal(err)
			}
			return paper.open(token)
		}
		if err := signed(paper.claims); err != nil {
			t.Errorf("%s: a whole one: %v", typ, err)
		}
		raw, err := MarshalPlain(paper.claims)
		if err != nil {
			t.Fatal(err)
		}
		whole := object{}
		if err := UnmarshalStrict(raw, &whole); err != nil {
			t.Fatal(err)
		}
		bad := map[string]any{"null": nil, "{}": object{}}
		for name, v := range whole {
			without, null := maps.Clone(whole), maps.Clone(whole)
			delete(without, name)
			bad["without "+name] = without
			if _, list := v.([]any); !list {
				null[name] = nil
				bad[name+" null"] = null
			}
		}
		for name, claims := range bad {
			if err := signed(claims); CodeOf(err) != SignatureInvalid && CodeOf(err) != GrantInvalid {
				t.Errorf("%s: %s: %v", typ, name, err)
			}
		}
	}
	for _, set := range []object{{"version": 1, "keys": nil}, {"version": 1, "keys": []any{}}, {"version": 0, "keys": []JWK{vRouter.VerificationKey().ToJWK()}}} {
		token, err := SignCompact(vRoot, TypKeySet, set)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := OpenKeySet(token, vRoot.Public()); err == nil {
			t.Errorf("a key set of %v", set)
		}
	}
}

// TestTicketNamesAreExact: nor does a signature make another name of a claim.
func TestTicketNamesAreExact(t *testing.T) {
	token, err := SignCompact(vRouter, TypTicket, object{"iss": vectorOrigin, "Intent_id": Digest(nil)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := OpenTicket(token, ring(vectorKeys()...)); CodeOf(err) != SignatureInvalid {
		t.Errorf("opened: %v", err)
	}
}

// TestVerifyPoPSpelling: a proof has one spelling.
func TestVerifyPoPSpelling(t *testing.T) {
	args := object{"task_id": "t"}
	pop, err := SignPoP(vTask, args)
	if err != nil {
		t.Fatal(err)
	}
	if err := VerifyPoP(pop, vTask.VerificationKey(), args); err != nil {
		t.Error(err)
	}
	last := len(pop) - 1
	for _, bad := range []string{pop + "\n", pop[:last] + nextDigit(pop[last]), pop + "="} {
		if err := VerifyPoP(bad, vTask.VerificationKey(), args); CodeOf(err) != SignatureInvalid {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// TestJWKSAdmitsTaskKeys: a verifier may be given what no key set may hold.
func TestJWKSAdmitsTaskKeys(t *testing.T) {
	task := []JWK{vTask.VerificationKey().ToJWK()}
	if keys, err := (JWKS{Keys: task}).Admit(); err != nil || keys[vTask.KID].Role != RoleTask {
		t.Errorf("%v %v", keys, err)
	}
	if _, err := (KeySet{Keys: task}).Admit(); err == nil {
		t.Error("a key set holds a task's key")
	}
	if _, err := (JWKS{Keys: []JWK{vRoot.VerificationKey().ToJWK()}}).Admit(); err == nil {
		t.Error("a root signs intents")
	}
}
