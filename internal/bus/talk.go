package bus

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"
)

// MaxReplies is how many messages a Talker may send for one request: the server drops
// what comes after them. The last one is kept for the answer.
const MaxReplies = 1000

// moreHeader marks a message that the answer comes after.
const moreHeader = "Writ-More"

// sayer sends what a Talker says before its answer, as long as it may. What is said is
// for display: losing it does no harm.
func sayer(r micro.Request) func([]byte) {
	var said atomic.Int64
	return func(data []byte) {
		if said.Add(1) < MaxReplies {
			_ = r.Respond(data, micro.WithHeaders(micro.Headers{moreHeader: {"1"}})) // fails only where the connection is lost
		}
	}
}

// Follow implements Conn. Its inbox ends with the call, and with it the server's way back
// from who answers.
func (c *conn) Follow(ctx context.Context, subject string, data []byte, on func([]byte)) ([]byte, error) {
	inbox := c.nc.NewInbox()
	sub, err := c.nc.SubscribeSync(inbox)
	if err != nil {
		return nil, fmt.Errorf("bus: follow %s: %w", subject, err)
	}
	defer func() { _ = sub.Unsubscribe() }() // fails only where the connection is lost
	m := message(ctx, subject, data)
	m.Reply = inbox
	if err := c.nc.PublishMsg(m); err != nil {
		return nil, fmt.Errorf("bus: follow %s: %w", subject, err)
	}
	for {
		m, err := sub.NextMsgWithContext(ctx)
		switch {
		case errors.Is(err, nats.ErrNoResponders):
			return nil, fmt.Errorf("%w on %s", ErrNoResponders, subject)
		case err != nil && ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil:
			return nil, fmt.Errorf("bus: follow %s: %w", subject, err)
		case m.Header.Get(moreHeader) == "":
			return m.Data, nil
		}
		on(m.Data)
	}
}
