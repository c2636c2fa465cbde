package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"aob.dev/writ/intents"
)

func receiptCommand(std IO) *cobra.Command {
	return group("receipt", "Get and verify receipts", receiptGet(std), receiptVerify(std))
}

func receiptGet(std IO) *cobra.Command {
	var f personFlags
	return answering(std, &cobra.Command{
		Use: "get INTENT_ID", Short: "Get the receipt of an order that was accepted", Args: cobra.ExactArgs(1),
	}, func(cmd *cobra.Command, args []string) (answer, error) {
		var got struct {
			IntentID string `json:"intent_id"`
			Position int64  `json:"position"`
			Receipt  string `json:"receipt"`
		}
		err := f.get(cmd, "/v1/intents/"+url.PathEscape(args[0])+"/receipt", &got)
		return answer{data: got, text: printable(got.Receipt) + "\n"}, err
	}, f.add)
}

// receiptVerdict of `writ receipt verify`; scripts rely on the shape.
type receiptVerdict struct {
	Valid   bool             `json:"valid"`
	Code    intents.Code     `json:"code"`
	Reason  string           `json:"reason"`
	KID     string           `json:"kid"`
	Receipt *intents.Receipt `json:"receipt"`
}

func receiptVerify(std IO) *cobra.Command {
	var keys, intentID string
	cmd := answering(std, &cobra.Command{
		Use: "verify [FILE|-] --keys JWKS", Short: "Check a receipt, offline", Args: cobra.MaximumNArgs(1),
		Long: "Check that the router of a log signed a receipt, offline. It is read from a file, or from\n" +
			"standard input: the receipt alone, or a JSON document with a member receipt, such as the\n" +
			"answer to an order. The keys are what /.well-known/jwks.json serves; have them over a way\n" +
			"that you trust. That the record is in the log is shown by `writ audit prove`.",
	}, func(_ *cobra.Command, args []string) (answer, error) {
		raw, err := input(std, args)
		if err != nil {
			return answer{}, malformed(err)
		}
		token, err := receiptIn(raw)
		if err != nil {
			return answer{}, malformed(err)
		}
		verifier, err := readKeys(keys)
		if err != nil {
			return answer{}, malformed(err)
		}
		v := judgeReceipt(token, verifier, intentID)
		return answer{data: v, text: v.line() + "\n", end: unless(v.Valid, "not valid")}, nil
	})
	cmd.Flags().StringVar(&keys, "keys", "", "JWKS file, as /.well-known/jwks.json serves it")
	cmd.Flags().StringVar(&intentID, "intent", "", "the order that it must be about")
	mustGive(cmd, "keys")
	return cmd
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
		return "", errors.New("no receipt: neither one alone nor a JSON document with a member receipt")
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
		err = intents.Refuse(intents.SignatureInvalid, "", "the receipt is of another log than the keys")
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
