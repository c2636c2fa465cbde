package cli

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"aob.dev/writ/intents"
	"aob.dev/writ/internal/client"
	"aob.dev/writ/internal/keydir"
)

// operatorTTL bounds the acceptance of an operator's order: it is sealed when it is sent.
const operatorTTL = 60

// operatorFlags say which router an operator speaks to, and with which key.
type operatorFlags struct {
	url, data, key string
}

func (f *operatorFlags) add(cmd *cobra.Command) {
	placeFlags(cmd, &f.url, &f.data)
	cmd.Flags().StringVar(&f.key, "key", "", "operator key file (default: the one of the data directory)")
}

func (f *operatorFlags) keys() string { return filepath.Join(f.data, "keys") }

// operator is a person with an operator key, and the router that they speak to.
type operator struct {
	key             intents.Signer
	subject, tenant string
	set             intents.JWKS // in force when the command began
	router          client.Client
}

// open reads the operator's key and asks the router which keys are in force: they
// say whose the key is.
func (f *operatorFlags) open(ctx context.Context) (*operator, error) {
	o := &operator{router: client.Client{URL: f.url}}
	var err error
	if o.set, err = keysInForce(ctx, f.url); err != nil {
		return nil, err
	}
	if o.key, err = f.operatorKey(o.set); err != nil {
		return nil, err
	}
	i := slices.IndexFunc(o.set.Keys, func(j intents.JWK) bool { return j.KID == o.key.KID })
	switch {
	case i < 0:
		return nil, no(fmt.Errorf("%s: the key %s is not in the key set in force: an operator of system puts it there (writ keys add)", intents.KeyUnknown, o.key.KID))
	case o.set.Keys[i].Role != intents.RoleOperator:
		return nil, no(fmt.Errorf("%s: the key %s is one of role %s: name an operator key with --key", intents.KeyRole, o.key.KID, o.set.Keys[i].Role))
	case o.set.Keys[i].Revoked:
		return nil, no(fmt.Errorf("%s: the key %s is revoked: name another operator key with --key", intents.KeyRevoked, o.key.KID))
	}
	o.subject, o.tenant = o.set.Keys[i].Subject, o.set.Keys[i].Tenant
	return o, nil
}

func (f *operatorFlags) operatorKey(set intents.JWKS) (intents.Signer, error) {
	if f.key != "" {
		s, err := intents.ReadKey(f.key, intents.RoleOperator)
		if err != nil {
			return s, malformed(err)
		}
		return s, nil
	}
	held, err := keydir.LoadAll(f.keys())
	if err != nil {
		return intents.Signer{}, malformed(fmt.Errorf("%w: name a data directory with --data, or an operator key with --key", err))
	}
	keys, err := held.InForce(set.Keys)
	if s, there := keys[intents.RoleOperator]; there {
		return s, nil
	}
	if err == nil {
		err = errors.New("no operator key of the data directory is in force")
	}
	return intents.Signer{}, no(err)
}

// foreign refuses to name another tenant where the router would: only operators
// of system may.
func (o *operator) foreign(tenant string) error {
	if tenant == "" || tenant == o.tenant || o.tenant == keydir.LocalTenant {
		return nil
	}
	return no(fmt.Errorf("%s: %s is an operator of tenant %s: only operators of system may name another tenant (--tenant %s)", intents.RBACForbidden, o.subject, o.tenant, tenant))
}

// seal signs an order as the operator.
func (o *operator) seal(typ string, args any, now time.Time) ([]byte, error) {
	raw, err := json.Marshal(args)
	if err != nil {
		return nil, err
	}
	sealed, _, err := intents.Seal(o.key, intents.Body{
		Version: intents.Version,
		Intent:  intents.Intent{Type: typ, Args: raw}, Actor: intents.Actor{UserID: o.subject, Tenant: o.tenant},
		Constraints: intents.Constraints{IssuedAt: intents.FormatTime(now), TTLSec: operatorTTL, Audience: o.set.Origin, IdempotencyKey: randomKey()},
	})
	return sealed, err
}

// randomKey is the idempotency key of an order that is one of its own.
func randomKey() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // crypto/rand.Read never fails
	return "rnd_" + hex.EncodeToString(b[:])
}

// order seals and submits. An answer that is not OK is an error with its code.
func (o *operator) order(ctx context.Context, typ string, args any) (*intents.Answer, error) {
	sealed, err := o.seal(typ, args, time.Now())
	if err != nil {
		return nil, malformed(err)
	}
	_, body, err := o.router.Submit(ctx, sealed, "")
	if err != nil {
		return nil, no(err)
	}
	a, err := answerIn(body, o.router.URL)
	if err != nil {
		return nil, err
	}
	if a.Code == intents.ApprovalRequired {
		return &a, no(fmt.Errorf("%s: %s waits for approval; nothing has changed", a.Code, a.IntentID))
	}
	if a.Code != intents.OK {
		return &a, no(fmt.Errorf("%s: %s", a.Code, a.Reason))
	}
	return &a, nil
}

// answerIn is what a router says to an order.
func answerIn(body []byte, url string) (a intents.Answer, err error) {
	if err := json.Unmarshal(body, &a); err != nil || a.Code == "" {
		return a, malformed(fmt.Errorf("what %s answers is no answer to an order", url))
	}
	return a, nil
}

// put is what a command of an operator prints with --json: which order it was,
// and what of it scripts need.
type put struct {
	IntentID string `json:"intent_id"`
	Position *int64 `json:"position,omitempty"`
}

func putBy(a *intents.Answer) put { return put{a.IntentID, a.Position} }

// ordered says which order it was.
func ordered(a *intents.Answer) answer { return answer{data: putBy(a), text: a.IntentID + "\n"} }
