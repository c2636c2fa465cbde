package keydir

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

// Operator signs intents as an operator of a tenant.
type Operator struct {
	Key             intents.Signer
	Subject, Tenant string
	Origin          string // of the log
}

// operatorTTL is how long an operator's intent may wait for acceptance, in seconds. It
// is signed when it is sent.
const operatorTTL = 60

// Sign signs an intent.
func (o Operator) Sign(typ string, args any, now time.Time) ([]byte, error) {
	return o.SignUnder(catalog.RandomKey(), typ, args, now)
}

// SignUnder signs an intent under an idempotency key.
func (o Operator) SignUnder(key, typ string, args any, now time.Time) ([]byte, error) {
	raw, err := json.Marshal(args)
	if err != nil {
		return nil, err
	}
	signed, _, err := intents.Sign(o.Key, intents.Body{
		Version: intents.Version,
		Intent:  intents.Spec{Type: typ, Args: raw}, Actor: intents.Actor{UserID: o.Subject, Tenant: o.Tenant},
		Constraints: intents.Constraints{
			IssuedAt: intents.FormatTime(now), TTLSec: operatorTTL,
			Audience: o.Origin, IdempotencyKey: key,
		},
	})
	return signed, err
}

// NewAPIKey makes an API key. A router knows only its hash.
func NewAPIKey() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // crypto/rand.Read never fails
	return "writ_" + base64.RawURLEncoding.EncodeToString(b[:])
}

// Bounds of an API key that somebody else has made. Whoever gets its hash can guess at it.
const (
	maxKey  = 512
	minBits = 80
)

// ErrWeakKey is an API key that can be guessed. This machine alone may be asked with it.
var ErrWeakKey = errors.New("bootstrap_key (API_KEY): it is too weak: it can be guessed; make one with `openssl rand -hex 32`, or unset it, and writ makes one")

// CheckAPIKey checks an API key made elsewhere: the error is ErrWeakKey, or that no request could
// carry it.
func CheckAPIKey(key string) error {
	switch {
	case strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }):
		return errors.New("bootstrap_key (API_KEY): it has characters that no header may have: use letters, digits and signs of ASCII")
	case len(key) > maxKey:
		return fmt.Errorf("bootstrap_key (API_KEY): it is too long: use %d characters at most", maxKey)
	case bits(key) < minBits:
		return ErrWeakKey
	}
	return nil
}
