package bus

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
)

// Listen calls fn with each message published on a subject, one after the other, until ctx ends.
// ready, if not nil, is closed once it listens. Messages that arrive while fn is too slow are
// lost.
func Listen(ctx context.Context, c Conn, subject string, ready chan<- struct{}, fn func(subject string, data []byte)) error {
	of, ok := c.(*conn)
	if !ok {
		return errors.New("bus: listen: not a connection of this package")
	}
	var sub *nats.Subscription
	err := of.permitted(ctx, func() (err error) {
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
