package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/internal/client"
)

// verdict of `writ intent verify`; scripts rely on the shape.
type verdict struct {
	Valid    bool         `json:"valid"`
	Code     intents.Code `json:"code"`
	Pointer  string       `json:"pointer"`
	Reason   string       `json:"reason"`
	IntentID string       `json:"intent_id"`
	KID      string       `json:"kid"`
}

func intentVerify(c *command) {
	keys := c.keysFlag()
	at := c.Flags().String("at", "", "check key, grant and ttl_sec at this RFC 3339 time (default: times are not checked)")
	c.answer = func(args []string) (answer, error) {
		raw, err := c.input(args)
		if err != nil {
			return answer{}, err
		}
		verifier, _, err := readKeyList(*keys)
		if err != nil {
			return answer{}, err
		}
		if *at != "" {
			if verifier.Now, err = time.Parse(time.RFC3339, *at); err != nil {
				return answer{}, usage(fmt.Errorf("--at: %q is not an RFC 3339 time", *at))
			}
		}
		v := verdict{Code: intents.OK}
		u, err := intents.Parse(raw)
		if err == nil {
			v.IntentID, v.KID = u.ID(), u.KID()
			err = verify(u, verifier)
		}
		if refusal, ok := errors.AsType[*intents.Refusal](err); ok {
			v.Code, v.Pointer, v.Reason = refusal.Code, refusal.Pointer, refusal.Reason
		}
		v.Valid = err == nil
		return answer{data: v, text: line(v) + "\n", end: unless(v.Valid, "not valid")}, nil
	}
}

// keysFlag declares the key set that a signature is checked with.
func (c *command) keysFlag() *string {
	keys := c.Flags().String("keys", "", "JWKS file, as /.well-known/jwks.json serves it")
	c.mustGive("keys")
	return keys
}

// verify checks an intent by itself. If the verifier has a time, the intent must be fresh
// at that time.
func verify(u *intents.Unverified, v intents.Verifier) error {
	e, err := u.Verify(v)
	switch {
	case err != nil || v.Now.IsZero():
		return err
	case e.IssuedAt().After(v.Now.Add(intents.Leeway)):
		return intents.Refuse(intents.NotYetValid, "/constraints/issued_at", "issued_at is after --at")
	case v.Now.After(e.IssuedAt().Add(e.TTL()).Add(intents.Leeway)):
		return intents.Refuse(intents.ExpiredTTL, "/constraints/ttl_sec", "the intent was older than its ttl_sec")
	}
	return nil
}

func line(v verdict) string {
	if v.Valid {
		return "valid " + v.IntentID
	}
	s := string(v.Code)
	if v.Pointer != "" {
		s += " at " + v.Pointer
	}
	return s + ": " + v.Reason
}

// readKeyList reads a key set, and gives its keys beside the verifier.
func readKeyList(path string) (intents.Verifier, []intents.Key, error) {
	raw, err := readFile(path)
	if err != nil {
		return intents.Verifier{}, nil, err
	}
	var set intents.JWKS
	if err := json.Unmarshal(raw, &set); err != nil {
		return intents.Verifier{}, nil, malformed(fmt.Errorf("%s: not a JWKS: %v", path, err))
	}
	keys, err := set.Admit()
	if err != nil {
		return intents.Verifier{}, nil, malformed(fmt.Errorf("%s: %v", path, err))
	}
	return intents.Verifier{Origin: set.Origin, Keys: intents.KeysFunc(func(kid string) (intents.Key, error) {
		k, ok := keys[kid]
		switch {
		case !ok:
			return intents.Key{}, intents.Refuse(intents.KeyUnknown, "/sig", "no key with this kid is in the JWKS")
		case k.Revoked:
			return intents.Key{}, intents.Refuse(intents.KeyRevoked, "/sig", "key is revoked")
		}
		return k, nil
	})}, slices.Collect(maps.Values(keys)), nil
}

// refusedAnswer is the answer to a refused intent, in the shape of the answer to an accepted one.
type refusedAnswer struct {
	intents.Answer
	PolicyIDs []string `json:"policy_ids,omitempty"`
	Retryable bool     `json:"retryable"`
}

func refusedBy(p *client.Error) refusedAnswer {
	return refusedAnswer{intents.Answer{
		IntentID: p.IntentID, TraceID: p.TraceID, Code: p.Code, Pointer: p.Pointer, Reason: p.Detail,
		Hint: p.Hint, Violations: p.Violations, Position: p.Position, Decision: p.Decision, Outcome: p.Outcome, Receipt: p.Receipt,
	}, p.PolicyIDs, p.Retryable}
}

func intentSubmit(c *command) {
	c.placeFlags()
	c.jsonFlag()
	dry := c.Flags().Bool("dry-run", false, "decide only; nothing is recorded")
	c.run = func(args []string) error {
		raw, err := c.input(args)
		if err != nil {
			return err
		}
		return c.send(raw, *dry)
	}
}

// send submits a signed intent and prints its answer.
func (c *command) send(signed []byte, dry bool) error {
	query := ""
	if dry {
		query = "?dry_run=true"
	}
	_, body, err := client.Client{URL: c.url}.Submit(c.Context(), signed, query)
	if problem, ok := errors.AsType[*client.Error](err); ok {
		if c.asJSON {
			err = errors.Join(printJSON(c.std.Out, refusedBy(problem)), err)
		}
		if dry { // nothing is recorded that policy explain could show
			err = errors.New(err.Error())
		}
	}
	if err != nil {
		return err
	}
	a, err := answerIn(body, c.url)
	if err != nil {
		return err
	}
	said := answer{data: a, text: fmt.Sprintln(a.Code, a.IntentID)}
	if a.Code != intents.OK {
		said.end = fmt.Errorf("%s: %s", a.Code, a.Reason)
	}
	return c.print(said)
}
