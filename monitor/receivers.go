package monitor

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"aob.dev/writ/internal/egress"
)

// Receiver receives alerts. Send may be called again with an incident that it has taken already.
type Receiver interface {
	Name() string
	Send(ctx context.Context, i Incident) error
}

// sendTime bounds one message.
const sendTime = 20 * time.Second

// Webhook gets incidents as JSON. If Secret is set, X-Writ-Signature is "sha256=" and the hex
// HMAC-SHA256, with that key, of X-Writ-Timestamp (seconds since 1970), a dot and the body.
type Webhook struct {
	URL, Secret string
	Now         func() time.Time
}

// Name implements Receiver.
func (Webhook) Name() string { return "webhook" }

// Send implements Receiver.
func (h Webhook) Send(ctx context.Context, i Incident) error {
	i.Owed = nil
	body, err := json.Marshal(i)
	if err != nil {
		return err
	}
	headers := map[string]string{}
	if h.Secret != "" {
		at := strconv.FormatInt(h.Now().Unix(), 10)
		mac := hmac.New(sha256.New, []byte(h.Secret))
		mac.Write([]byte(at + "." + string(body)))
		headers["X-Writ-Timestamp"], headers["X-Writ-Signature"] = at, "sha256="+hex.EncodeToString(mac.Sum(nil))
	}
	return post(ctx, receiver("the webhook", "alert_webhook (--alert-webhook)", "alert_webhook_secret"), h.URL, body, headers)
}

// Slack gets incidents at the URL of an incoming webhook.
type Slack struct{ URL string }

// Name implements Receiver.
func (Slack) Name() string { return "slack" }

// Send implements Receiver.
func (s Slack) Send(ctx context.Context, i Incident) error {
	body, err := json.Marshal(map[string]string{"text": text(i)})
	if err != nil {
		return err
	}
	return post(ctx, receiver("Slack", "alert_slack", ""), s.URL, body, nil)
}

// receiver names a receiver of alerts in errors.
func receiver(what, address, secret string) egress.Server {
	return egress.Server{
		Name: what, Unaffected: "alerts are kept for it, and a running writ tries again each minute",
		Address: address, Secret: secret, Try: "writ admin alerts test", Quiet: true,
	}
}

// post sends JSON. The error has neither the URL, which may be a secret, nor the answer.
func post(ctx context.Context, to egress.Server, at string, body []byte, headers map[string]string) error {
	ctx, cancel := context.WithTimeout(ctx, sendTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, at, bytes.NewReader(body))
	if err != nil {
		return to.Fault(&egress.ReasonError{Message: "its URL cannot be used", Mend: egress.Name})
	}
	req.Header.Set("Content-Type", "application/json")
	for name, value := range headers {
		req.Header.Set(name, value)
	}
	resp, err := egress.Client(egress.Transport(at)).Do(req)
	if err != nil {
		return to.Fault(err)
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<16)) // so that the connection can be used again
	if resp.StatusCode >= http.StatusMultipleChoices {
		return to.Fault(egress.Status(resp.StatusCode))
	}
	return nil
}

// text of an incident for people.
func text(i Incident) string {
	if i.Until != nil {
		return fmt.Sprintf("%s is over: it lasted from %s to %s.", i.Rule, i.Since.UTC().Format(time.RFC3339), i.Until.UTC().Format(time.RFC3339))
	}
	return fmt.Sprintf("%s (%s): %s. Seen: %s.\nWhat to do: %s.\nSince %s.", i.Rule, i.Severity, i.Says, i.Observed, i.Do, i.Since.UTC().Format(time.RFC3339))
}
