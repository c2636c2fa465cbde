package recorder_test

import (
	"context"
	"sync"

	"aob.dev/writ/storage"
)

// counting counts actual writes.
type counting struct {
	storage.Documents
	mu      sync.Mutex // guards what follows
	created int
	fail    error // while set, every call fails
	failed  chan struct{}
}

func (c *counting) broken() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fail != nil {
		select {
		case c.failed <- struct{}{}:
		default:
		}
	}
	return c.fail
}

func (c *counting) set(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fail = err
}

func (c *counting) Project(ctx context.Context, tenant, index string, p storage.Projection) error {
	if err := c.broken(); err != nil {
		return err
	}
	created, err := c.Documents.Create(ctx, tenant, index, p.Created...)
	if err != nil {
		return err
	}
	c.mu.Lock()
	c.created += created
	c.mu.Unlock()
	return c.Documents.Project(ctx, tenant, index, storage.Projection{Put: p.Put})
}

// limited accepts some writes and fails all later ones.
type limited struct {
	storage.Documents
	mu   sync.Mutex // guards left
	left int
	out  chan struct{}
}

func (l *limited) spend() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.left--; l.left == -1 {
		close(l.out)
	}
	if l.left < 0 {
		return errDown
	}
	return nil
}

func (l *limited) Project(ctx context.Context, tenant, index string, p storage.Projection) error {
	if err := l.spend(); err != nil {
		return err
	}
	return l.Documents.Project(ctx, tenant, index, p)
}
