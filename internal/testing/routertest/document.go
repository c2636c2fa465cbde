package routertest

import (
	"context"
	"sync/atomic"
)

// Document is a durable.Store in memory.
type Document struct{ doc atomic.Pointer[[]byte] }

// Get implements durable.Store.
func (d *Document) Get(context.Context) ([]byte, error) {
	if doc := d.doc.Load(); doc != nil {
		return *doc, nil
	}
	return nil, nil
}

// Put implements durable.Store.
func (d *Document) Put(_ context.Context, doc []byte) error {
	d.doc.Store(&doc)
	return nil
}
