package keydir

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

// Operator signs orders as an operator of a tenant.
type Operator struct {
	Key             intents.Signer
	Subject, Tenant string
	Origin          string // of the log
}

// operatorTTL is how long an operator's order may wait for acceptance, in seconds. It
// is signed when it is sent.
const operatorTTL = 60

// Seal signs an order.
func (o Operator) Seal(typ string, args any, now time.Time) ([]byte, error) {
	return o.SealUnder(catalog.RandomKey(), typ, args, now)
}

// SealUnder signs an order under an idempotency key.
func (o Operator) SealUnder(key, typ string, args any, now time.Time) ([]byte, error) {
	raw, err := json.Marshal(args)
	if err != nil {
		return nil, err
	}
	sealed, _, err := intents.Seal(o.Key, intents.Body{
		Version: intents.Version,
		Intent:  intents.Intent{Type: typ, Args: raw}, Actor: intents.Actor{UserID: o.Subject, Tenant: o.Tenant},
		Constraints: intents.Constraints{
			IssuedAt: intents.FormatTime(now), TTLSec: operatorTTL,
			Audience: o.Origin, IdempotencyKey: key,
		},
	})
	return sealed, err
}

// NewAPIKey makes an API key. A router knows only its hash.
func NewAPIKey() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // crypto/rand.Read never fails
	return "writ_" + base64.RawURLEncoding.EncodeToString(b[:])
}

// Bounds of an API key that somebody else has made. Whoever gets its hash can guess at it.
const (
	minKey, maxKey = 32, 512
	minVariety     = 12 // different characters
)

// CheckAPIKey says what is wrong with an API key that somebody else has made.
func CheckAPIKey(key string) error {
	variety := map[rune]bool{}
	for _, r := range key {
		variety[r] = true
	}
	switch {
	case strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }):
		return errors.New("bootstrap_key (API_KEY): it has characters that no header may have: use letters, digits and signs of ASCII")
	case len(key) < minKey || len(key) > maxKey || len(variety) < minVariety:
		return errors.New("bootstrap_key (API_KEY): it is too weak, or too long: make one with `openssl rand -hex 32`, or unset it, and writ makes one")
	}
	return nil
}
