package bus

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"
)

// MaxReplies is the number of messages that a Talker may send for one request: the server drops
// any further ones. The last one is reserved for the answer. A text that is written for an hour
// has fewer pieces.
const MaxReplies = 100_000

// moreHeader marks a message that precedes the answer.
const moreHeader = "Writ-More"

// sayer sends the messages of a Talker that precede its answer, up to the limit. They are for
// display: losing them does no harm.
func sayer(r micro.Request) func([]byte) {
	var said atomic.Int64
	return func(data []byte) {
		if said.Add(1) < MaxReplies {
			_ = r.Respond(data, micro.WithHeaders(micro.Headers{moreHeader: {"1"}})) // fails only where the connection is lost
		}
	}
}

// Follow implements Conn. Its inbox ends with the call, and with it the responder's reply path
// through the server.
func (c *conn) Follow(ctx context.Context, subject string, data []byte, on func([]byte)) ([]byte, error) {
	inbox := c.nc.NewInbox()
	sub, err := c.nc.SubscribeSync(inbox)
	if err != nil {
		return nil, fmt.Errorf("bus: follow %s: %w", subject, Plain(err))
	}
	defer func() { _ = sub.Unsubscribe() }() // fails only where the connection is lost
	m := message(ctx, subject, data)
	m.Reply = inbox
	if err := c.nc.PublishMsg(m); err != nil {
		return nil, fmt.Errorf("bus: follow %s: %w", subject, Plain(err))
	}
	for {
		m, err := sub.NextMsgWithContext(ctx)
		switch {
		case errors.Is(err, nats.ErrNoResponders):
			return nil, fmt.Errorf("%w on %s", ErrNoResponders, subject)
		case err != nil && ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil:
			return nil, fmt.Errorf("bus: follow %s: %w", subject, Plain(err))
		case m.Header.Get(moreHeader) == "":
			return m.Data, nil
		}
		on(m.Data)
	}
}

// Listen calls fn with each message published on a subject, one after the other, until ctx ends.
// ready, if not nil, is closed once it listens. Messages that arrive while fn is too slow are
// lost.
func Listen(ctx context.Context, c Conn, subject string, ready chan<- struct{}, fn func(subject string, data []byte)) error {
	of, err := ours(c)
	if err != nil {
		return err
	}
	var sub *nats.Subscription
	err = of.permitted(ctx, func() (err error) {
		sub, err = of.nc.Subscribe(subject, func(m *nats.Msg) { fn(m.Subject, m.Data) })
		return err
	})
	if err != nil {
		return fmt.Errorf("bus: listen to %s: %w", subject, Plain(err))
	}
	if ready != nil {
		close(ready)
	}
	select {
	case <-ctx.Done():
	case <-of.closed:
		return nil
	}
	_ = sub.Unsubscribe() // fails only where the connection is lost
	return nil
}
