package keydir

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
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
	maxKey  = 512
	minBits = 80
)

// ErrWeakKey is an API key that can be guessed. This machine alone may be asked with it.
var ErrWeakKey = errors.New("bootstrap_key (API_KEY): it is too weak: it can be guessed; make one with `openssl rand -hex 32`, or unset it, and writ makes one")

// CheckAPIKey says what is wrong with an API key that somebody else has made: ErrWeakKey, or that
// no request could bring it.
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

// bits that a text has at most: for each character what the frequencies of all give, but none for
// one that goes on a sequence (abc, 321, aaa) or repeats what stands before.
func bits(text string) float64 {
	count := map[byte]float64{}
	fresh, seen := 0, map[string]bool{}
	for i := range len(text) {
		count[text[i]]++
		if i < 2 {
			fresh++
			continue
		}
		before := strings.ToLower(text[i-2 : i+1])
		if text[i]-text[i-1] != text[i-1]-text[i-2] && !seen[before] {
			fresh++
		}
		seen[before] = true
	}
	each := 0.0
	for _, n := range count {
		p := n / float64(len(text))
		each -= p * math.Log2(p)
	}
	return each * float64(fresh)
}
