package policies

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"

	"aob.dev/writ/intents"
)

// ParsePublicKey reads the key that signs bundles: PEM (PUBLIC KEY) or a JWK as
// /.well-known/jwks.json lists it; Ed25519 either way.
func ParsePublicKey(raw []byte) (ed25519.PublicKey, error) {
	block, _ := pem.Decode(raw)
	if block == nil {
		var jwk intents.JWK
		if err := json.Unmarshal(raw, &jwk); err != nil {
			return nil, errors.New("neither PEM nor a JWK")
		}
		key, err := jwk.ToKey()
		return key.Public, err
	}
	if block.Type != "PUBLIC KEY" {
		return nil, errors.New("a PEM file, but of no public key")
	}
	parsed, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return nil, err
	}
	pub, ok := parsed.(ed25519.PublicKey)
	if !ok {
		return nil, errors.New("the key is not Ed25519")
	}
	return pub, intents.AdmitKey(pub)
}
