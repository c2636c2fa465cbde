package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"aob.dev/writ/audit"
	"aob.dev/writ/intents"
)

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
