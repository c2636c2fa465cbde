package intents

import (
	"strings"
	"testing"
)

// TestRawKeySignsNothingElse: a key for raw signatures signs only intents, in that form; no other key's
// record allows it.
func TestRawKeySignsNothingElse(t *testing.T) {
	b := testBody()
	b.Actor = Actor{UserID: "bob", Tenant: "default"}
	b.Context = nil
	signed, _, err := Sign(vRaw, b)
	if err != nil || !strings.Contains(string(signed), `"kid":"`+vRaw.KID+`"`) || !strings.Contains(string(signed), `"sig":"ed25519:`) {
		t.Fatalf("%s %v", signed, err)
	}
	if _, err := SignCompact(vRaw, TypKeySet, KeySet{}); err == nil {
		t.Error("it signs a token")
	}
	if _, err := SignPoP(vRaw, object{}); err == nil {
		t.Error("it proves possession")
	}
	plain := vRaw
	plain.Raw = false
	token, err := SignCompact(plain, TypPoP, object{})
	if err != nil {
		t.Fatal(err)
	}
	var claims struct{}
	if _, err := OpenCompact(token, TypPoP, ring(vRaw.VerificationKey()), &claims); CodeOf(err) != SignatureInvalid {
		t.Errorf("a token of it opens: %v", err)
	}
	pop, err := SignPoP(plain, object{})
	if err != nil {
		t.Fatal(err)
	}
	if err := VerifyPoP(pop, vRaw.VerificationKey(), object{}); CodeOf(err) != SignatureInvalid {
		t.Errorf("a proof of possession of it holds: %v", err)
	}
	for _, role := range []Role{RoleGateway, RoleManager, RolePlanner, RoleTask, RoleWorkflow, RoleRouter, RoleLedger, RoleRoot} {
		k := fixedSigner(role, "raw of another role").VerificationKey()
		k.Raw = true
		if _, err := k.ToJWK().ToKey(); err == nil {
			t.Errorf("a raw key of a %s is admitted", role)
		}
	}
	k := vRaw.VerificationKey()
	if again, err := k.ToJWK().ToKey(); err != nil || !again.Raw {
		t.Errorf("its record forgets that it is raw: %+v %v", again, err)
	}
}
