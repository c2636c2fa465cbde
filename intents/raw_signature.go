package intents

import (
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
)

// RawPrefix begins a raw signature: "ed25519:" and 64 bytes in base64 with padding, over the
// canonical envelope itself. It has no protected header: actor.kid, which is signed, names the
// key, and the key's record must allow it (docs/decisions/0076-raw-signatures.md).
const RawPrefix = "ed25519:"

var rawB64 = base64.StdEncoding.Strict()

// sigOf is the member sig. A raw signature has no header.
func sigOf(header, sig string) string {
	if header == "" {
		return sig
	}
	return header + ".." + sig
}

// sigLen is the length of the member sig.
func sigLen(header, sig string) int {
	if header == "" {
		return len(sig)
	}
	return len(header) + len("..") + len(sig)
}

// raw reports whether the envelope has a raw signature.
func (u *Unverified) raw() bool { return u.header == "" }

// readRaw reads a raw signature in its one spelling.
func (u *Unverified) readRaw() error {
	text, ok := strings.CutPrefix(u.sig, RawPrefix)
	sig, err := rawB64.DecodeString(text)
	if !ok || err != nil || len(sig) != len(u.signature) || len(text) != rawB64.EncodedLen(len(sig)) { // the decoder skips line ends
		return Refuse(SignatureInvalid, "/sig", "a raw signature must be ed25519: and 64 bytes in base64 with padding (RFC 4648 §4)")
	}
	copy(u.signature[:], sig)
	if u.kid = u.body.Actor.KID; u.kid == "" || !validKID(u.kid) {
		return Refuse(SignatureInvalid, "/actor/kid", "a raw signature names no key: actor.kid must name it")
	}
	u.input = u.canonical
	return nil
}

// verifiesRaw reports whether sig is the raw signature of a key that makes these.
func (k Key) verifiesRaw(message, sig []byte) bool {
	return k.Raw && len(k.Public) == ed25519.PublicKeySize && ed25519.Verify(k.Public, message, sig)
}

// signRaw makes a raw signature over a canonical envelope.
func signRaw(key Signer, payload []byte) (string, error) {
	sig, err := key.Key.Sign(rand.Reader, payload, crypto.Hash(0))
	if err == nil && len(sig) != ed25519.SignatureSize {
		err = errors.New("not an Ed25519 signer")
	}
	if err != nil {
		return "", fmt.Errorf("sign an envelope: %w", err)
	}
	return RawPrefix + rawB64.EncodeToString(sig), nil
}
