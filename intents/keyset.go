package intents

import (
	"crypto/ed25519"
	"fmt"
	"time"
)

// JWK is a public key as JSON Web Key (RFC 8037) with our members.
type JWK struct {
	KID      string `json:"kid"`
	Kty      string `json:"kty"`
	Crv      string `json:"crv"`
	X        string `json:"x"`
	Alg      string `json:"alg"`
	Use      string `json:"use"`
	Role     Role   `json:"role,omitempty"`
	Subject  string `json:"subject,omitempty"`
	Tenant   string `json:"tenant,omitempty"`
	NotAfter string `json:"not_after,omitempty"`
	Revoked  bool   `json:"revoked,omitempty"`
	Raw      bool   `json:"raw,omitempty"` // signs intents as ed25519:<base64>, and nothing else
}

// ToJWK publishes a key.
func (k Key) ToJWK() JWK {
	j := JWK{
		KID: k.KID, Kty: "OKP", Crv: "Ed25519", X: b64.EncodeToString(k.Public), Alg: "EdDSA", Use: "sig",
		Role: k.Role, Subject: k.Subject, Tenant: k.Tenant, Revoked: k.Revoked, Raw: k.Raw,
	}
	if !k.NotAfter.IsZero() {
		j.NotAfter = k.NotAfter.UTC().Format(time.RFC3339)
	}
	return j
}

// ToKey admits a JWK: Ed25519 for signatures only, canonical, of prime order,
// and named by its thumbprint.
func (j JWK) ToKey() (Key, error) {
	if j.Kty != "OKP" || j.Crv != "Ed25519" || j.Alg != "EdDSA" || j.Use != "sig" {
		return Key{}, fmt.Errorf("key %q: must be OKP Ed25519, alg EdDSA, use sig", j.KID)
	}
	raw, err := b64.DecodeString(j.X)
	if err != nil || !oneSpelling(j.X) {
		return Key{}, fmt.Errorf("key %q: x is not base64url without padding", j.KID)
	}
	pub := ed25519.PublicKey(raw)
	if err := AdmitKey(pub); err != nil {
		return Key{}, fmt.Errorf("key %q: %v", j.KID, err)
	}
	if j.KID != Thumbprint(pub) {
		return Key{}, fmt.Errorf("key %q: kid is not the key's thumbprint", j.KID)
	}
	k := Key{KID: j.KID, Role: j.Role, Public: pub, Subject: j.Subject, Tenant: j.Tenant, Revoked: j.Revoked, Raw: j.Raw}
	if k.Raw && k.Role != RoleOperator {
		return Key{}, fmt.Errorf("key %q: raw is for operator keys: a %s signs tokens as well", j.KID, k.Role)
	}
	if j.NotAfter != "" {
		if k.NotAfter, err = time.Parse(time.RFC3339, j.NotAfter); err != nil {
			return Key{}, fmt.Errorf("key %q: not_after is not RFC 3339", j.KID)
		}
	}
	return k, nil
}

// KeySet is one root-signed version of the keys in force. Prev is
// the digest of the version before, empty for version 1.
type KeySet struct {
	Version int64  `json:"version"`
	Prev    string `json:"prev,omitempty"`
	Keys    []JWK  `json:"keys"`
}

// JWKS is the published form of a key set (RFC 7517 §5 plus origin and version).
type JWKS struct {
	Origin  string `json:"origin"`
	Version int64  `json:"version"`
	Keys    []JWK  `json:"keys"`
	KeySet  string `json:"key_set,omitempty"` // the version as the root signed it; its digest is the next one's prev
}

// Admit checks every key and returns them by kid. Two keys with one kid, a role
// outside the set, an operator without subject and tenant are refused.
func (s KeySet) Admit() (map[string]Key, error) { return admit(s.Keys, false) }

// Admit admits the keys that a verifier was given. Unlike in a key set, those of tasks,
// which are in step intents only, may be among them.
func (s JWKS) Admit() (map[string]Key, error) { return admit(s.Keys, true) }

func admit(keys []JWK, tasks bool) (map[string]Key, error) {
	out := make(map[string]Key, len(keys))
	for _, j := range keys {
		k, err := j.ToKey()
		if err != nil {
			return nil, err
		}
		switch k.Role {
		case RoleGateway, RoleManager, RolePlanner, RoleWorkflow, RoleRouter, RoleLedger:
		case RoleOperator:
			if k.Subject == "" || k.Tenant == "" {
				return nil, fmt.Errorf("key %q: an operator key names its subject and tenant", k.KID)
			}
		case RoleTask:
			if !tasks {
				return nil, fmt.Errorf("key %q: a task's key has no place in a key set", k.KID)
			}
		case RoleRoot:
			fallthrough
		default:
			return nil, fmt.Errorf("key %q: role %q has no place in a key set", k.KID, k.Role)
		}
		if _, dup := out[k.KID]; dup {
			return nil, fmt.Errorf("key %q stands twice in the key set", k.KID)
		}
		out[k.KID] = k
	}
	return out, nil
}

// SignKeySet signs a version with the root key.
func SignKeySet(root Signer, s KeySet) (string, error) {
	if _, err := s.Admit(); err != nil {
		return "", err
	}
	return SignCompact(root, TypKeySet, s)
}

// OpenKeySet verifies a version with the pinned root key.
func OpenKeySet(token string, root ed25519.PublicKey) (KeySet, map[string]Key, error) {
	pinned := KeysFunc(func(kid string) (Key, error) {
		if kid != Thumbprint(root) {
			return Key{}, Refuse(KeyUnknown, "", "not signed by the pinned root key")
		}
		return Key{KID: kid, Role: RoleRoot, Public: root}, nil
	})
	var s KeySet
	if _, err := OpenCompact(token, TypKeySet, pinned, &s); err != nil {
		return KeySet{}, nil, err
	}
	if s.Version < 1 || len(s.Keys) == 0 {
		return KeySet{}, nil, Refuse(SignatureInvalid, "", "a key set has a version from 1 on, and keys")
	}
	keys, err := s.Admit()
	return s, keys, err
}
