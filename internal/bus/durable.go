package bus

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"
)

// Durable is a JetStream stream of one subject that is kept in files.
type Durable struct {
	js      jetstream.JetStream
	subject string
}

// OpenDurable creates a stream and its subject, both called name. The user of c
// must be allowed JetStream.
func OpenDurable(ctx context.Context, c Conn, name string) (*Durable, error) {
	nc, ok := c.(*conn)
	if !ok {
		return nil, errors.New("bus: durable: not a connection of this package")
	}
	_, err := nc.js.CreateStream(ctx, jetstream.StreamConfig{Name: name, Subjects: []string{name}, Storage: jetstream.FileStorage})
	if err != nil {
		return nil, fmt.Errorf("bus: create stream %s: %w", name, err)
	}
	return &Durable{nc.js, name}, nil
}

// Publish returns when the server says that it has stored the message.
func (d *Durable) Publish(ctx context.Context, data []byte) error {
	if _, err := d.js.Publish(ctx, d.subject, data); err != nil {
		return fmt.Errorf("bus: publish %s: %w", d.subject, err)
	}
	return nil
}
