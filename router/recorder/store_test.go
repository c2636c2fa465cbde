package recorder_test

import (
	"context"
	"sync"

	"aob.dev/writ/storage"
)

// counting counts what was really written.
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

func (c *counting) Create(ctx context.Context, tenant, index string, docs ...storage.Document) (int, error) {
	if err := c.broken(); err != nil {
		return 0, err
	}
	n, err := c.Documents.Create(ctx, tenant, index, docs...)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.created += n
	return n, err
}

func (c *counting) Put(ctx context.Context, tenant, index string, doc storage.Document) error {
	if err := c.broken(); err != nil {
		return err
	}
	return c.Documents.Put(ctx, tenant, index, doc)
}

// limited takes some writes and fails all later ones.
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

func (l *limited) Create(ctx context.Context, tenant, index string, docs ...storage.Document) (int, error) {
	if err := l.spend(); err != nil {
		return 0, err
	}
	return l.Documents.Create(ctx, tenant, index, docs...)
}

func (l *limited) Put(ctx context.Context, tenant, index string, doc storage.Document) error {
	if err := l.spend(); err != nil {
		return err
	}
	return l.Documents.Put(ctx, tenant, index, doc)
}
