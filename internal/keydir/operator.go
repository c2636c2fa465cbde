package keydir

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
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
	raw, err := json.Marshal(args)
	if err != nil {
		return nil, err
	}
	sealed, _, err := intents.Seal(o.Key, intents.Body{
		Version: intents.Version,
		Intent:  intents.Intent{Type: typ, Args: raw}, Actor: intents.Actor{UserID: o.Subject, Tenant: o.Tenant},
		Constraints: intents.Constraints{
			IssuedAt: intents.FormatTime(now), TTLSec: operatorTTL,
			Audience: o.Origin, IdempotencyKey: catalog.RandomKey(),
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
