// Package notify sends short messages to people and to programs of theirs: chats, phones, mail and
// webhooks that an operator named.
package notify

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"slices"
	"time"

	"aob.dev/writ/internal/egress"
)

// Message is one message. A message that is sent again has the same ID.
type Message struct {
	ID    string
	Title string // one line
	Text  string // plain text
	Link  string // a URL; empty: none
	Data  any    // what a webhook gets, as JSON
}

// Receiver takes messages. Send may be called again with a message that it has taken already.
type Receiver interface {
	Name() string
	Send(ctx context.Context, m Message) error
}

// Options of a receiver.
type Options struct {
	Name   string // unique among the receivers of a process
	Kind   string // one of Kinds
	URL    string // where it takes messages; mail: smtp://host:port or smtps://host:port
	Secret string // webhook: signs the body; ntfy: access token; mail: USER:PASSWORD
	From   string // mail: the sender's address
	To     string // mail
	Now    func() time.Time
	// Server is how errors tell of it.
	Server egress.Server
}

// sendTime bounds one message.
const sendTime = 20 * time.Second

// kinds are the protocols that receivers speak.
var kinds = map[string]func(ctx context.Context, o Options, m Message) error{
	"mail": sendMail, "ntfy": sendNtfy, "slack": sendSlack, "teams": sendTeams, "webhook": sendWebhook,
}

// Kinds are the kinds of receivers, sorted.
func Kinds() []string { return slices.Sorted(maps.Keys(kinds)) }

// New makes a receiver of a kind that exists.
func New(o Options) Receiver { return receiver{o} }

type receiver struct{ to Options }

// Name implements Receiver.
func (r receiver) Name() string { return r.to.Name }

// Send implements Receiver. The error has neither the URL, which may be a secret, nor the answer.
func (r receiver) Send(ctx context.Context, m Message) error {
	ctx, cancel := context.WithTimeout(ctx, sendTime)
	defer cancel()
	if err := kinds[r.to.Kind](ctx, r.to, m); err != nil {
		return r.to.Server.Fault(err)
	}
	return nil
}

// post sends a body.
func post(ctx context.Context, o Options, body []byte, headers map[string]string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, o.URL, bytes.NewReader(body))
	if err != nil {
		return &egress.ReasonError{Message: "its URL cannot be used", Mend: egress.Name}
	}
	req.Header.Set("Content-Type", "application/json")
	for name, value := range headers {
		req.Header.Set(name, value)
	}
	resp, err := egress.Client(egress.Transport(o.URL)).Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<16)) // so that the connection can be used again
	if resp.StatusCode >= http.StatusMultipleChoices {
		return egress.Status(resp.StatusCode)
	}
	return nil
}

func postJSON(ctx context.Context, o Options, body any, headers map[string]string) error {
	doc, err := json.Marshal(body)
	if err != nil {
		return err
	}
	return post(ctx, o, doc, headers)
}
