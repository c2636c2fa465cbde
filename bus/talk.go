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
// any further ones. The last one is reserved for the answer.
const MaxReplies = 1000

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
