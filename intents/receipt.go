package intents

// Receipt is the router's signed statement about an intent: a pure function of its
// records. Claims of a JWS of type writ-receipt+jws.
type Receipt struct {
	// Members are in the order of RFC 8785.
	Code          Code   `json:"code"`
	IntentID      string `json:"intent_id"`
	Issuer        string `json:"iss"`                      // log origin
	OutcomeDigest string `json:"outcome_digest,omitempty"` // record digest of the outcome, once there is one
	PolicyDigest  string `json:"policy_digest"`
	Position      int64  `json:"position"`
	RecordDigest  string `json:"record_digest"`
	WithinSec     int    `json:"within_sec"` // promise to be in the log
}

// PromiseSeconds is the receipt's promise: the records are leaves of the log within this time.
const PromiseSeconds = 60

// IssueReceipt signs a receipt with the router's key.
func IssueReceipt(key Signer, r Receipt) (string, error) { return SignCompact(key, TypReceipt, r) }

// OpenReceipt verifies a receipt.
func OpenReceipt(token string, keys Keys) (Receipt, error) {
	var r Receipt
	key, err := OpenCompact(token, TypReceipt, keys, &r)
	if err != nil {
		return Receipt{}, err
	}
	if key.Role != RoleRouter {
		return Receipt{}, Refuse(KeyRole, "", "receipt is not signed by a router")
	}
	return r, nil
}
