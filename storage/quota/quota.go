// Package quota bounds writes to blobs: by the free disk, and by the size of one
// tenant's blobs.
//
//	bytes of a tenant = stored blobs + files of its steps and turns + what is being written
//
// Room is reserved a step ahead of what is read, so that with any number of writers at
// once the disk ends above the floor, and intents, whose floor is lower, continue.
// The store counts a tenant's blobs at the first request; files of
// steps are those of this process, since others are swept.
package quota

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"aob.dev/writ/storage"
)

// Store is the store of blobs that is bounded.
type Store interface {
	storage.Blobs
	storage.Collector
	// Held returns the size of a tenant's blobs in bytes.
	Held(ctx context.Context, tenant string) (int64, error)
	Close() error
}

// Limits of a store.
type Limits struct {
	Free   func() (int64, error) // bytes of disk that may still be filled
	Floor  int64                 // of Free, below which nothing is accepted; negative: none
	Tenant int64                 // bytes that one tenant may hold; negative: no bound
	Exempt string                // a tenant for which neither counts: the system itself
}

// step is how much room is reserved ahead.
const step = 1 << 20

// recount bounds how often a tenant's blobs are recounted because they exceed the quota.
const recount = time.Minute

// Blobs is a Store within limits. Writes fail with storage.ErrFull or
// storage.ErrQuota. Safe for concurrent use.
type Blobs struct {
	Store
	limits Limits

	mu      sync.Mutex // guards what follows
	ahead   int64      // reserved and not yet written, of all tenants
	tenants map[string]*account
}

// account is what a tenant holds.
type account struct {
	counted time.Time // when kept was counted; zero: not yet
	kept    int64
	writing int64
	files   map[storage.Scope]scopeUsage
}

// scopeUsage are the files of a scope.
type scopeUsage struct {
	bytes int64
	at    time.Time // of the last one
}

// New bounds a store.
func New(of Store, l Limits) *Blobs {
	return &Blobs{Store: of, limits: l, tenants: map[string]*account{}}
}

// Put implements storage.Blobs.
func (b *Blobs) Put(ctx context.Context, s storage.Scope, r io.Reader) (storage.File, error) {
	if s.Tenant == b.limits.Exempt {
		return b.Store.Put(ctx, s, r)
	}
	w := &writing{r: r, ctx: ctx, blobs: b, tenant: s.Tenant}
	f, err := b.Store.Put(ctx, s, w)
	w.end()
	if err == nil {
		b.mu.Lock()
		a := b.account(s.Tenant)
		a.files[s] = scopeUsage{a.files[s].bytes + f.Size, time.Now()}
		b.mu.Unlock()
	}
	return f, w.why(err)
}

// Keep implements storage.Blobs.
func (b *Blobs) Keep(ctx context.Context, tenant string, r io.Reader) (string, int64, error) {
	if tenant == b.limits.Exempt {
		return b.Store.Keep(ctx, tenant, r)
	}
	w := &writing{r: r, ctx: ctx, blobs: b, tenant: tenant}
	ref, size, err := b.Store.Keep(ctx, tenant, w)
	w.end()
	if err == nil {
		b.mu.Lock()
		b.account(tenant).kept += size // what was there already counts twice until it is counted again
		b.mu.Unlock()
	}
	return ref, size, w.why(err)
}

// Wipe implements storage.Blobs.
func (b *Blobs) Wipe(ctx context.Context, s storage.Scope) error {
	err := b.Store.Wipe(ctx, s)
	if err == nil {
		b.mu.Lock()
		delete(b.account(s.Tenant).files, s)
		b.mu.Unlock()
	}
	return err
}

// Sweep implements storage.Blobs.
func (b *Blobs) Sweep(ctx context.Context, age time.Duration) (int, error) {
	began := time.Now()
	n, err := b.Store.Sweep(ctx, age)
	if err != nil {
		return n, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, a := range b.tenants {
		for s, h := range a.files {
			if h.at.Before(began.Add(-age)) {
				delete(a.files, s)
			}
		}
	}
	return n, nil
}

// Drop implements storage.Collector.
func (b *Blobs) Drop(ctx context.Context, tenant, ref string, age time.Duration) (bool, error) {
	gone, err := b.Store.Drop(ctx, tenant, ref, age)
	if gone {
		b.mu.Lock()
		b.account(tenant).counted = time.Time{}
		b.mu.Unlock()
	}
	return gone, err
}

// Room reports whether a tenant may write so many bytes now; nothing is reserved.
func (b *Blobs) Room(ctx context.Context, tenant string, bytes int64) error {
	if tenant == b.limits.Exempt {
		return nil
	}
	if err := b.reserve(ctx, tenant, bytes); err != nil {
		return err
	}
	b.release(tenant, bytes, bytes)
	return nil
}

// account of a tenant. The lock must be held.
func (b *Blobs) account(tenant string) *account {
	a := b.tenants[tenant]
	if a == nil {
		a = &account{files: map[storage.Scope]scopeUsage{}}
		b.tenants[tenant] = a
	}
	return a
}

// reserve room for bytes that a tenant is about to write.
func (b *Blobs) reserve(ctx context.Context, tenant string, bytes int64) error {
	if err := b.count(ctx, tenant, bytes); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	a := b.account(tenant)
	if b.exceeds(a, bytes) {
		return storage.ErrQuota
	}
	if b.limits.Floor >= 0 {
		free, err := b.limits.Free()
		if err != nil {
			return fmt.Errorf("free disk: %w", err)
		}
		if free-b.ahead-bytes < b.limits.Floor {
			return storage.ErrFull
		}
	}
	a.writing += bytes
	b.ahead += bytes
	return nil
}

// exceeds the quota. The lock must be held.
func (b *Blobs) exceeds(a *account, bytes int64) bool {
	sum := a.kept + a.writing + bytes
	for _, h := range a.files {
		sum += h.bytes
	}
	return b.limits.Tenant >= 0 && sum > b.limits.Tenant
}

// count counts a tenant's blobs, if the sum is unknown, or if by the known sum there
// would be no room.
func (b *Blobs) count(ctx context.Context, tenant string, bytes int64) error {
	if b.limits.Tenant < 0 {
		return nil
	}
	b.mu.Lock()
	a := b.account(tenant)
	due := a.counted.IsZero() || b.exceeds(a, bytes) && time.Since(a.counted) > recount
	b.mu.Unlock()
	if !due {
		return nil
	}
	began := time.Now()
	kept, err := b.Held(ctx, tenant)
	if err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	a.kept, a.counted = kept, began
	return nil
}

// release what was reserved: of the account, and of what is not yet written.
func (b *Blobs) release(tenant string, reserved, ahead int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.account(tenant).writing -= reserved
	b.ahead -= ahead
}

// writing reserves room for what is read through it.
type writing struct {
	r        io.Reader
	ctx      context.Context //nolint:containedctx // lives for one write
	blobs    *Blobs
	tenant   string
	reserved int64
	left     int64 // of what was reserved last
	refused  error
}

func (w *writing) Read(p []byte) (int, error) {
	if w.left == 0 {
		if err := w.blobs.reserve(w.ctx, w.tenant, step); err != nil {
			w.refused = err
			return 0, err
		}
		w.reserved, w.left = w.reserved+step, step
	}
	n, err := w.r.Read(p[:min(int64(len(p)), w.left)])
	w.left -= int64(n)
	if w.left == 0 {
		w.blobs.release(w.tenant, 0, step) // the disk itself reports it now
	}
	return n, err
}

// end returns what was reserved.
func (w *writing) end() {
	ahead := int64(0)
	if w.left > 0 {
		ahead = step
	}
	w.blobs.release(w.tenant, w.reserved, ahead)
}

// why a write failed: what was refused here, else the store's error.
func (w *writing) why(err error) error {
	if err != nil && w.refused != nil && !errors.Is(err, w.refused) {
		return errors.Join(w.refused, err)
	}
	return err
}
