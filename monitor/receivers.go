package monitor

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/smtp"
	"net/textproto"
	"net/url"
	"slices"
	"strconv"
	"strings"
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
		Address: address, Secret: secret, Try: "writ alerts test", Quiet: true,
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

// Email sends incidents over SMTP, with STARTTLS if the server has it, and never a password
// without.
type Email struct {
	Server         string // host:port
	From           string
	To             []string
	User, Password string
	Now            func() time.Time
}

// ParseEmail reads smtp://[user@]host[:port]?from=ADDRESS&to=ADDRESS,ADDRESS.
func ParseEmail(at, password string, now func() time.Time) (Email, error) {
	u, err := url.Parse(at)
	if err != nil || u.Scheme != "smtp" || u.Hostname() == "" || u.Query().Get("from") == "" || u.Query().Get("to") == "" {
		return Email{}, errors.New("is not smtp://[user@]host[:port]?from=ADDRESS&to=ADDRESS,ADDRESS")
	}
	e := Email{Server: u.Host, From: u.Query().Get("from"), To: strings.Split(u.Query().Get("to"), ","), User: u.User.Username(), Password: password, Now: now}
	if u.Port() == "" {
		e.Server = u.Hostname() + ":587"
	}
	for _, a := range append([]string{e.From}, e.To...) {
		if strings.ContainsAny(a, "\r\n ") || !strings.Contains(a, "@") {
			return Email{}, fmt.Errorf("%q is no address", a)
		}
	}
	return e, nil
}

// Name implements Receiver.
func (Email) Name() string { return "email" }

// Send implements Receiver.
func (e Email) Send(ctx context.Context, i Incident) error {
	err := e.send(ctx, i)
	if err == nil {
		return nil
	}
	to := receiver("the mail server "+e.Server, "alert_email (--alert-email)", "alert_email_password, and the user in alert_email")
	to.Quiet = false
	var refused *textproto.Error
	if errors.As(err, &refused) {
		r := &egress.ReasonError{Message: "it refuses the message", Err: err}
		if slices.Contains([]int{530, 534, 535, 538}, refused.Code) { // RFC 4954
			r.Message, r.Mend = "it does not take the credentials", egress.Secret
		}
		err = r
	}
	var strange textproto.ProtocolError
	if errors.As(err, &strange) {
		err = &egress.ReasonError{Message: "it is no mail server", Mend: egress.Name, Err: err}
	}
	return to.Fault(err)
}

func (e Email) send(ctx context.Context, i Incident) error {
	ctx, cancel := context.WithTimeout(ctx, sendTime)
	defer cancel()
	conn, err := egress.Transport(e.Server).DialContext(ctx, "tcp", e.Server)
	if err != nil {
		return err
	}
	defer conn.Close()
	if end, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(end); err != nil {
			return err
		}
	}
	host, _, err := net.SplitHostPort(e.Server)
	if err != nil {
		return err
	}
	c, err := smtp.NewClient(conn, host)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.Hello("localhost"); err != nil {
		return err
	}
	if ok, _ := c.Extension("STARTTLS"); ok {
		if err := c.StartTLS(egress.TLS(host)); err != nil {
			return err
		}
	}
	if e.User != "" {
		if err := c.Auth(overTLS{smtp.PlainAuth("", e.User, e.Password, host)}); err != nil {
			return err
		}
	}
	if err := c.Mail(e.From); err != nil {
		return err
	}
	for _, to := range e.To {
		if err := c.Rcpt(to); err != nil {
			return err
		}
	}
	w, err := c.Data()
	if err != nil {
		return err
	}
	what := "alert"
	if i.Until != nil {
		what = "over"
	}
	_, err = fmt.Fprintf(w, "From: %s\r\nTo: %s\r\nDate: %s\r\nSubject: writ: %s: %s\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n%s\r\n",
		e.From, strings.Join(e.To, ", "), e.Now().Format(time.RFC1123Z), what, i.Rule, strings.ReplaceAll(text(i), "\n", "\r\n"))
	if err := errors.Join(err, w.Close()); err != nil {
		return err
	}
	_ = c.Quit() // it has the message, whatever its answer
	return nil
}

// overTLS is PlainAuth, which refuses to begin without TLS.
type overTLS struct{ smtp.Auth }

// Start implements smtp.Auth.
func (a overTLS) Start(s *smtp.ServerInfo) (protocol string, first []byte, err error) {
	if protocol, first, err = a.Auth.Start(s); err != nil {
		err = &egress.ReasonError{Message: "it has no TLS, without which no password is sent", Mend: egress.Name, Err: err}
	}
	return protocol, first, err
}

// text of an incident for people.
func text(i Incident) string {
	if i.Until != nil {
		return fmt.Sprintf("%s is over: it lasted from %s to %s.", i.Rule, i.Since.UTC().Format(time.RFC3339), i.Until.UTC().Format(time.RFC3339))
	}
	return fmt.Sprintf("%s (%s): %s. Seen: %s.\nWhat to do: %s.\nSince %s.", i.Rule, i.Severity, i.Says, i.Observed, i.Do, i.Since.UTC().Format(time.RFC3339))
}
