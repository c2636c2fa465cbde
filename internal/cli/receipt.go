package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"aob.dev/writ/intents"
)

func receiptGet(c *command) {
	c.personFlags()
	c.answer = func(args []string) (answer, error) {
		var got struct {
			IntentID string `json:"intent_id"`
			Position int64  `json:"position"`
			Receipt  string `json:"receipt"`
		}
		err := c.get("/v1/intents/"+url.PathEscape(args[0])+"/receipt", &got)
		return answer{data: got, text: printable(got.Receipt) + "\n"}, err
	}
}

// receiptVerdict of `writ receipt verify`; scripts rely on the shape.
type receiptVerdict struct {
	Valid   bool             `json:"valid"`
	Code    intents.Code     `json:"code"`
	Reason  string           `json:"reason"`
	KID     string           `json:"kid"`
	Receipt *intents.Receipt `json:"receipt"`
}

func receiptVerify(c *command) {
	keys := c.keysFlag()
	intentID := c.Flags().String("intent", "", "order that the receipt must be about")
	c.answer = func(args []string) (answer, error) {
		raw, err := c.input(args)
		if err != nil {
			return answer{}, err
		}
		token, err := receiptIn(raw)
		if err != nil {
			return answer{}, malformed(err)
		}
		verifier, err := readKeys(*keys)
		if err != nil {
			return answer{}, err
		}
		v := judgeReceipt(token, verifier, *intentID)
		return answer{data: v, text: v.line() + "\n", end: unless(v.Valid, "not valid")}, nil
	}
}

// receiptIn finds the receipt in what was read.
func receiptIn(raw []byte) (string, error) {
	text := strings.TrimSpace(string(raw))
	if !strings.HasPrefix(text, "{") {
		return text, nil
	}
	var doc struct {
		Receipt string `json:"receipt"`
	}
	if err := json.Unmarshal([]byte(text), &doc); err != nil || doc.Receipt == "" {
		return "", errors.New("no receipt: the input is neither a receipt nor a JSON document with a member receipt")
	}
	return doc.Receipt, nil
}

// judgeReceipt verifies a receipt for the log that the keys are of.
func judgeReceipt(token string, verifier intents.Verifier, intentID string) receiptVerdict {
	v := receiptVerdict{Code: intents.OK, KID: intents.SignerOf(token)}
	r, err := intents.OpenReceipt(token, verifier.Keys)
	switch {
	case err != nil:
	case verifier.Origin == "" || r.Issuer != verifier.Origin:
		err = intents.Refuse(intents.SignatureInvalid, "", "the receipt and the keys are of different logs")
	case intentID != "" && r.IntentID != intentID:
		err = intents.Refuse(intents.SignatureInvalid, "", "the receipt is about another order")
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
	return fmt.Sprintf("valid: order %s ended %s, position %d of %s", v.Receipt.IntentID, v.Receipt.Code, v.Receipt.Position, printable(v.Receipt.Issuer))
}
