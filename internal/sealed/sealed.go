// Package sealed encrypts small values for storage, or for a way through others.
package sealed

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
)

// Box seals values under one key, by AES-256-GCM. A sealed value opens only with the same words of what it is about.
type Box struct{ aead cipher.AEAD }

// NewBox derives a key from a secret, for one use.
func NewBox(secret []byte, use string) (Box, error) {
	key, err := hkdf.Key(sha256.New, secret, nil, use, 32)
	if err != nil {
		return Box{}, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return Box{}, err
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	return Box{aead}, err
}

// Seal returns the value's JSON, encrypted, in base64url.
func (b Box) Seal(v any, about ...string) (string, error) {
	plain, err := json.Marshal(v)
	if err != nil {
		return "", err
	}
	with, err := json.Marshal(about)
	if err != nil {
		return "", err
	}
	return base64.RawURLEncoding.EncodeToString(b.aead.Seal(nil, nil, plain, with)), nil //nolint:gosec // G407: the box makes a random nonce
}

// ErrSealed reports a value that was not sealed by this key, or is about something else.
var ErrSealed = errors.New("it cannot be opened here")

// Open decodes a sealed value.
func (b Box) Open(text string, v any, about ...string) error {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil {
		return ErrSealed
	}
	with, err := json.Marshal(about)
	if err != nil {
		return err
	}
	plain, err := b.aead.Open(nil, nil, raw, with)
	if err != nil {
		return ErrSealed
	}
	return json.Unmarshal(plain, v)
}
