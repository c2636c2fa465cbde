package bus

import (
	"fmt"

	"github.com/nats-io/nkeys"
)

// NewNKey makes the key with which a third party's service connects: the seed, which
// only the service has, and the public key, which the server knows.
func NewNKey() (seed, public string, err error) {
	pair, err := nkeys.CreateUser()
	if err != nil {
		return "", "", fmt.Errorf("bus: nkey: %w", err)
	}
	defer pair.Wipe()
	raw, err := pair.Seed()
	if err != nil {
		return "", "", fmt.Errorf("bus: nkey: %w", err)
	}
	public, err = pair.PublicKey()
	return string(raw), public, err
}

// PublicNKey is the public key of a seed.
func PublicNKey(seed string) (string, error) {
	pair, err := nkeys.FromSeed([]byte(seed))
	if err != nil {
		return "", fmt.Errorf("bus: nkey: %w", err)
	}
	defer pair.Wipe()
	return pair.PublicKey()
}

// signNonce shows to a server that a connection has a seed.
func signNonce(seed string, nonce []byte) ([]byte, error) {
	pair, err := nkeys.FromSeed([]byte(seed))
	if err != nil {
		return nil, fmt.Errorf("bus: nkey: %w", err)
	}
	defer pair.Wipe()
	return pair.Sign(nonce)
}
