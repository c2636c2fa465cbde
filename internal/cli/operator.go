package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/internal/client"
	"aob.dev/writ/internal/keydir"
)

// operatorFlags declares the flags for an operator's router and key.
func (c *command) operatorFlags() {
	c.placeFlags()
	c.signerFlag("private key file of the operator (default: the one in the data directory)")
}

// keys is the directory of private keys.
func (c *command) keys() string { return filepath.Join(c.dir, "keys") }

// operator is a person with an operator key, and the router that they use.
type operator struct {
	keydir.Operator
	set    intents.JWKS // in force when the command began
	router client.Client
}

// operator reads the operator's key and asks the router for the keys in force, which identify the
// key's owner.
func (c *command) operator() (*operator, error) {
	o := &operator{router: client.Client{URL: c.url}}
	var err error
	if o.set, err = c.keysInForce(); err != nil {
		return nil, err
	}
	if o.Key, err = c.operatorKey(o.set); err != nil {
		return nil, err
	}
	kid := o.Key.KID
	i := slices.IndexFunc(o.set.Keys, func(j intents.JWK) bool { return j.KID == kid })
	switch {
	case i < 0:
		return nil, fmt.Errorf("%s: the key %s is not in the key set in force: an operator of system must add it (writ admin keys add)", intents.KeyUnknown, kid)
	case o.set.Keys[i].Role != intents.RoleOperator:
		return nil, fmt.Errorf("%s: the key %s has the role %s: name an operator key with --signer", intents.KeyRole, kid, o.set.Keys[i].Role)
	case o.set.Keys[i].Revoked:
		return nil, fmt.Errorf("%s: the key %s is revoked: name another operator key with --signer", intents.KeyRevoked, kid)
	}
	o.Key.Raw = o.set.Keys[i].Raw
	o.Subject, o.Tenant, o.Origin = o.set.Keys[i].Subject, o.set.Keys[i].Tenant, o.set.Origin
	return o, nil
}

func (c *command) operatorKey(set intents.JWKS) (s intents.Signer, err error) {
	if c.signer != "" {
		return c.signingKey(intents.RoleOperator)
	}
	held, err := keydir.LoadAll(c.keys())
	if err != nil {
		return s, malformed(fmt.Errorf("%w: name a data directory with --data, or an operator key with --signer", err))
	}
	keys, err := held.InForce(set.Keys)
	s, there := keys[intents.RoleOperator]
	if there {
		return s, nil
	}
	if err == nil {
		err = errors.New("no operator key in the data directory is in force")
	}
	return s, err
}

// signingKey reads the private key of --signer.
func (c *command) signingKey(role intents.Role) (intents.Signer, error) {
	s, err := intents.ReadKey(c.signer, role)
	if err != nil {
		err = malformed(err)
	}
	return s, err
}

// intent opens the operator, signs an intent and submits it.
func (c *command) intent(typ string, args any) (*intents.Answer, error) {
	o, err := c.operator()
	if err != nil {
		return nil, err
	}
	return c.submitAs(o, typ, args)
}

// submitAs signs and submits. Every code but OK is an error.
func (c *command) submitAs(o *operator, typ string, args any) (*intents.Answer, error) {
	signed, err := o.Sign(typ, args, time.Now())
	if err != nil {
		return nil, malformed(err)
	}
	_, body, err := o.router.Submit(c.Context(), signed, "")
	if err != nil {
		return nil, err
	}
	a, err := answerIn(body, o.router.URL)
	if err != nil {
		return nil, err
	}
	return &a, errorOf(&a)
}

// errorOf is the error of every code but OK.
func errorOf(a *intents.Answer) error {
	switch a.Code {
	case intents.OK:
		return nil
	case intents.ApprovalRequired:
		return fmt.Errorf("%s: %s waits for approval; nothing has changed", a.Code, a.IntentID)
	default:
		return fmt.Errorf("%s: %s", a.Code, a.Reason)
	}
}

// answerIn is a router's answer to an intent.
func answerIn(body []byte, url string) (a intents.Answer, err error) {
	if err := json.Unmarshal(body, &a); err != nil || a.Code == "" {
		return a, malformed(fmt.Errorf("the answer of %s is not an answer to an intent", url))
	}
	return a, nil
}

// intentAnswer prints the intent's id.
func intentAnswer(a *intents.Answer, err error) (answer, error) {
	if err != nil {
		return answer{}, err
	}
	return answer{data: putBy(a), text: a.IntentID + "\n"}, nil
}

func putBy(a *intents.Answer) put { return put{IntentID: a.IntentID, Position: a.Position} }
