package bus

import (
	"fmt"

	"github.com/nats-io/nkeys"
)

// NewNKey creates the key with which a third party's service connects: the seed, known only to
// the service, and the public key, known to the server.
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

// PublicNKey returns the public key of a seed.
func PublicNKey(seed string) (string, error) {
	pair, err := nkeys.FromSeed([]byte(seed))
	if err != nil {
		return "", fmt.Errorf("bus: nkey: %w", err)
	}
	defer pair.Wipe()
	return pair.PublicKey()
}

// signNonce proves to a server that a connection has a seed.
func signNonce(seed string, nonce []byte) ([]byte, error) {
	pair, err := nkeys.FromSeed([]byte(seed))
	if err != nil {
		return nil, fmt.Errorf("bus: nkey: %w", err)
	}
	defer pair.Wipe()
	return pair.Sign(nonce)
}
