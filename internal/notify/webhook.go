package notify

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"
)

// sendWebhook sends a message's data as JSON. With a secret, X-Writ-Signature is "sha256=" and the
// hex HMAC-SHA256, with that key, of X-Writ-Timestamp (seconds since 1970), a dot and the body.
func sendWebhook(ctx context.Context, o Options, m Message) error {
	body, err := json.Marshal(m.Data)
	if err != nil {
		return err
	}
	headers := map[string]string{"X-Writ-Id": m.ID}
	if o.Secret != "" {
		at := strconv.FormatInt(o.Now().Unix(), 10)
		mac := hmac.New(sha256.New, []byte(o.Secret))
		mac.Write([]byte(at + "." + string(body)))
		headers["X-Writ-Timestamp"], headers["X-Writ-Signature"] = at, "sha256="+hex.EncodeToString(mac.Sum(nil))
	}
	return post(ctx, o, body, headers)
}
