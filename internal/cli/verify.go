package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"aob.dev/writ/audit"
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
	keys := c.Flags().String("keys", "", "JWKS file, as /.well-known/jwks.json serves it")
	c.mustGive("keys")
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

// receiptReply is the answer of an interface to a request for a receipt.
type receiptReply struct{ Receipt string }

var receiptRows = []row{
	{use: "get INTENT_ID", short: "Get the receipt of an accepted intent", make: asks(request[receiptReply]{
		path: "/v1/intents/{}/receipt", ids: &ownIntents, text: func(_ []string, got receiptReply) string { return printable(got.Receipt) + "\n" },
	})},
	{use: "verify [FILE|-] --keys JWKS|--trust FILE", short: "Check a receipt, and the proof that it is in the log, offline", make: receiptVerify},
}

// receiptVerdict of `writ intent receipt verify`; scripts rely on the shape.
type receiptVerdict struct {
	Valid   bool             `json:"valid"`
	Code    intents.Code     `json:"code"`
	Reason  string           `json:"reason"`
	KID     string           `json:"kid"`
	Receipt *intents.Receipt `json:"receipt"`
	InLog   bool             `json:"in_log"` // a proof came along, and its records are in the log
}

func receiptVerify(c *command) {
	keys := c.Flags().String("keys", "", "JWKS file, as /.well-known/jwks.json serves it")
	trust := c.Flags().String("trust", "", "trust file, in the place of --keys: checks a document of writ audit prove by the pinned root key")
	intentID := c.Flags().String("intent", "", "intent that the receipt must be about")
	c.answer = func(args []string) (answer, error) {
		if (*keys == "") == (*trust == "") {
			return answer{}, usage(errors.New("give --keys JWKS, or --trust FILE for a document of writ audit prove"))
		}
		raw, err := c.input(args)
		if err != nil {
			return answer{}, err
		}
		doc, err := receiptIn(raw)
		if err != nil {
			return answer{}, malformed(err)
		}
		var v receiptVerdict
		if *trust != "" {
			v, err = doc.judgedByTrust(*trust)
		} else {
			v, err = doc.judgedByKeys(*keys)
		}
		if err != nil {
			return answer{}, err
		}
		if v.Valid && *intentID != "" && v.Receipt.IntentID != *intentID {
			v = receiptVerdict{Code: intents.SignatureInvalid, Reason: "the receipt is about another intent", KID: v.KID}
		}
		return answer{data: v, text: v.line() + "\n", end: unless(v.Valid, "not valid")}, nil
	}
}

// receiptDoc is a receipt, alone or in a document that proves that its records are in the log.
type receiptDoc struct {
	Receipt   string          `json:"receipt"`
	IntentID  string          `json:"intent_id"`
	KeySets   []string        `json:"key_sets"`  // of writ audit prove
	Inclusion json.RawMessage `json:"inclusion"` // one, of the interface; or an array, of writ audit prove

	raw []byte
}

// receiptIn finds the receipt in the input.
func receiptIn(raw []byte) (doc receiptDoc, err error) {
	text := strings.TrimSpace(string(raw))
	if !strings.HasPrefix(text, "{") {
		return receiptDoc{Receipt: text}, nil
	}
	if err := json.Unmarshal([]byte(text), &doc); err != nil || doc.Receipt == "" && doc.Inclusion == nil {
		return doc, errors.New("no receipt: the input is neither a receipt nor a JSON document with a member receipt")
	}
	doc.raw = raw
	return doc, nil
}

// judgedByTrust verifies the output of writ audit prove, from the root key on.
func (d receiptDoc) judgedByTrust(file string) (v receiptVerdict, err error) {
	o, err := verifyOptions(file)
	if err != nil {
		return v, err
	}
	var p audit.Proof
	if d.KeySets == nil || json.Unmarshal(d.raw, &p) != nil {
		return v, malformed(errors.New("no proof: --trust takes a document of writ audit prove; a receipt by itself is checked with --keys"))
	}
	if p.Receipt == "" {
		return receiptVerdict{Code: intents.NotFound, Reason: "the proof has no receipt: the intent was refused, or has not ended, and nothing here says which intent the records are of"}, nil
	}
	v = receiptVerdict{KID: intents.SignerOf(p.Receipt)}
	if err := p.Check(*o.Trust); err != nil {
		v.Code, v.Reason = intents.SignatureInvalid, err.Error()
		return v, nil //nolint:nilerr // it is the verdict
	}
	var r intents.Receipt
	if err := intents.PeekClaims(p.Receipt, &r); err != nil { // it was verified above
		return v, err
	}
	v.Valid, v.InLog, v.Code, v.Receipt = true, true, intents.OK, &r
	return v, nil
}

// judgedByKeys verifies a receipt for the log of the keys, and that its records are in that log, if
// the document claims so.
func (d receiptDoc) judgedByKeys(file string) (v receiptVerdict, err error) {
	verifier, list, err := readKeyList(file)
	if err != nil {
		return v, err
	}
	v = judgeReceipt(d.Receipt, verifier)
	if !v.Valid || d.Inclusion == nil {
		return v, nil
	}
	if err = audit.InLog(*v.Receipt, list, d.Inclusion); d.IntentID != "" && d.IntentID != v.Receipt.IntentID {
		err = errors.New("the receipt is about another intent than the document")
	}
	if err != nil {
		return receiptVerdict{Code: intents.SignatureInvalid, Reason: "the proof: " + err.Error(), KID: v.KID}, nil //nolint:nilerr // likewise
	}
	v.InLog = true
	return v, nil
}

// judgeReceipt verifies a receipt for the log that the keys are of.
func judgeReceipt(token string, verifier intents.Verifier) receiptVerdict {
	v := receiptVerdict{Code: intents.OK, KID: intents.SignerOf(token)}
	r, err := intents.OpenReceipt(token, verifier.Keys)
	if err == nil && (verifier.Origin == "" || r.Issuer != verifier.Origin) {
		err = intents.Refuse(intents.SignatureInvalid, "", "the receipt and the keys are of different logs")
	}
	var refusal *intents.Refusal
	switch {
	case errors.As(err, &refusal):
		v.Code, v.Reason = refusal.Code, refusal.Reason
	case err != nil:
		v.Code, v.Reason = intents.SignatureInvalid, "not a receipt"
	default:
		v.Valid, v.Receipt = true, &r
	}
	return v
}

func (v receiptVerdict) line() string {
	if !v.Valid {
		return fmt.Sprintf("%s: %s", v.Code, v.Reason)
	}
	line := fmt.Sprintf("valid: intent %s ended %s, position %d of %s", v.Receipt.IntentID, v.Receipt.Code, v.Receipt.Position, printable(v.Receipt.Issuer))
	if v.InLog {
		return line + ", which is in the log"
	}
	return line + "; no proof came along that this is in the log (writ audit prove)"
}
