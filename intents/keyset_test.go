package intents

import (
	"crypto/ed25519"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestJWKRoundTrip(t *testing.T) {
	k := vOperator.VerificationKey()
	k.Subject, k.Tenant, k.Revoked, k.NotAfter = "bob", "default", true, time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
	got, err := k.ToJWK().ToKey()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(k, got); diff != "" {
		t.Errorf("key changed (-sent +read):\n%s", diff)
	}
}

func TestJWKRefused(t *testing.T) {
	for name, change := range map[string]func(j *JWK){
		"RSA":            func(j *JWK) { j.Kty = "RSA" },
		"X25519":         func(j *JWK) { j.Crv = "X25519" },
		"ES256":          func(j *JWK) { j.Alg = "ES256" },
		"no alg":         func(j *JWK) { j.Alg = "" },
		"for encryption": func(j *JWK) { j.Use = "enc" },
		"no use":         func(j *JWK) { j.Use = "" },
		"padded x":       func(j *JWK) { j.X += "=" },
		"short x":        func(j *JWK) { j.X = j.X[:40] },
		"another's kid":  func(j *JWK) { j.KID = vTask.KID },
		"another's x":    func(j *JWK) { j.X = vTask.VerificationKey().ToJWK().X },
		"not_after":      func(j *JWK) { j.NotAfter = "tomorrow" },
		"weak, own thumb": func(j *JWK) {
			weak := make(ed25519.PublicKey, 32)
			j.X, j.KID = b64.EncodeToString(weak), Thumbprint(weak)
		},
	} {
		j := vManager.VerificationKey().ToJWK()
		change(&j)
		if _, err := j.ToKey(); err == nil {
			t.Errorf("%s: admitted", name)
		}
	}
}

func TestKeySetAdmits(t *testing.T) {
	operator := vOperator.VerificationKey()
	operator.Subject, operator.Tenant = "bob", "default"
	nameless, homeless := operator, operator
	nameless.Subject, homeless.Tenant = "", ""
	root := fixedSigner(RoleRoot, "root")
	for _, tt := range []struct {
		name string
		keys []Key
		ok   bool
	}{
		{"empty", nil, true},
		{"every role", []Key{vGateway.VerificationKey(), vManager.VerificationKey(), operator, vRouter.VerificationKey(), fixedSigner(RolePlanner, "p").VerificationKey(), fixedSigner(RoleWorkflow, "w").VerificationKey(), fixedSigner(RoleLedger, "l").VerificationKey()}, true},
		{"operator without subject", []Key{nameless}, false},
		{"operator without tenant", []Key{homeless}, false},
		{"a task's key", []Key{vTask.VerificationKey()}, false},
		{"the root", []Key{root.VerificationKey()}, false},
		{"no role", []Key{fixedSigner("", "x").VerificationKey()}, false},
		{"unknown role", []Key{fixedSigner("admin", "x").VerificationKey()}, false},
		{"one kid twice", []Key{vManager.VerificationKey(), {KID: vManager.KID, Role: RoleRouter, Public: vManager.Public()}}, false},
	} {
		var s KeySet
		for _, k := range tt.keys {
			s.Keys = append(s.Keys, k.ToJWK())
		}
		admitted, err := s.Admit()
		if (err == nil) != tt.ok {
			t.Errorf("%s: %v", tt.name, err)
		}
		if err == nil && len(admitted) != len(tt.keys) {
			t.Errorf("%s: %d of %d keys", tt.name, len(admitted), len(tt.keys))
		}
	}
}

func TestKeySetIsSignedByTheRoot(t *testing.T) {
	root, other := fixedSigner(RoleRoot, "root"), fixedSigner(RoleRoot, "other root")
	set := KeySet{Version: 2, Prev: Digest([]byte("1")), Keys: []JWK{vManager.VerificationKey().ToJWK()}}
	token, err := SignKeySet(root, set)
	if err != nil {
		t.Fatal(err)
	}
	got, keys, err := OpenKeySet(token, root.Public())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(set, got); diff != "" || keys[vManager.KID].Role != RoleManager {
		t.Errorf("key set changed (-sent +read):\n%s", diff)
	}
	if _, _, err := OpenKeySet(token, other.Public()); CodeOf(err) != KeyUnknown {
		t.Errorf("another root: %v", err)
	}
	forged, err := SignKeySet(Signer{KID: root.KID, Role: RoleRoot, Key: other.Key}, set)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := OpenKeySet(forged, root.Public()); CodeOf(err) != SignatureInvalid {
		t.Errorf("the root's kid on another's signature: %v", err)
	}
	if _, err := SignKeySet(root, KeySet{Keys: []JWK{vTask.VerificationKey().ToJWK()}}); err == nil {
		t.Error("a task's key was signed into a key set")
	}
}
