package bus

import (
	"context"
	"errors"

	"github.com/nats-io/nats.go/jetstream"
)

// Document is a small document of a cell that one process writes and its successor reads. It is in
// the cell's bucket.
type Document struct {
	conn Conn
	name string
}

// NewDocument names a document; c must be a router's.
func NewDocument(c Conn, name string) Document { return Document{c, name} }

// Get returns the document; nil: none was put.
func (d Document) Get(ctx context.Context) ([]byte, error) {
	kv, err := bucketOf(ctx, d.conn)
	if err != nil {
		return nil, err
	}
	e, err := kv.Get(ctx, d.name)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, Fault("bucket "+Bucket, err)
	}
	return e.Value(), nil
}

// Put replaces the document. It is on most of the servers when Put returns.
func (d Document) Put(ctx context.Context, doc []byte) error {
	kv, err := bucketOf(ctx, d.conn)
	if err != nil {
		return err
	}
	if _, err = kv.Put(ctx, d.name, doc); err != nil {
		return Fault("bucket "+Bucket, err)
	}
	return nil
}
