package blobdir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"aob.dev/writ/internal/durable"
	"aob.dev/writ/storage"
)

// Wipe removes a scope; see storage.Blobs. The scope is gone when it returns; a
// crash while its files are deleted leaves them in partial/.
func (b *Blobs) Wipe(ctx context.Context, s storage.Scope) error {
	dir, err := b.scopeDir(s)
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if _, err := b.wipe(dir, func(fs.FileInfo) bool { return true }); err != nil {
		return fmt.Errorf("wipe scope: %w", err)
	}
	return nil
}

// wipe removes a scope's directory if it is there and still meant.
func (b *Blobs) wipe(dir string, meant func(fs.FileInfo) bool) (bool, error) {
	away := b.begin()
	defer b.discard(away)
	b.place.Lock() // only for the rename: nobody waits for the deleting
	defer b.place.Unlock()
	info, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !meant(info) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if err := os.Rename(dir, away); err != nil {
		return false, err
	}
	return true, durable.SyncDir(filepath.Dir(dir))
}

// Sweep removes old scopes and what a crash left; see storage.Blobs. It goes on
// after an error and returns all of them.
func (b *Blobs) Sweep(ctx context.Context, age time.Duration) (int, error) {
	before := time.Now().Add(-age)
	old := func(info fs.FileInfo) bool { return info.ModTime().Before(before) }
	removed, failed := b.sweepPartial(ctx)
	tenants, err := os.ReadDir(b.scopes)
	failed = errors.Join(failed, err)
	for _, t := range tenants {
		n, err := b.sweepTenant(ctx, filepath.Join(b.scopes, t.Name()), old)
		removed += n
		failed = errors.Join(failed, err)
	}
	return removed, failed
}

func (b *Blobs) sweepTenant(ctx context.Context, dir string, old func(fs.FileInfo) bool) (removed int, failed error) {
	scopes, err := os.ReadDir(dir)
	failed = err
	for _, s := range scopes {
		if err := ctx.Err(); err != nil {
			return removed, errors.Join(failed, err)
		}
		gone, err := b.wipe(filepath.Join(dir, s.Name()), old)
		if gone {
			removed++
		}
		failed = errors.Join(failed, err)
	}
	return removed, failed
}

// sweepPartial removes what no call of this process is working on.
func (b *Blobs) sweepPartial(ctx context.Context) (removed int, failed error) {
	entries, err := os.ReadDir(b.partial)
	if err != nil {
		return 0, err
	}
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return removed, errors.Join(failed, err)
		}
		b.mu.Lock()
		busy := b.active[e.Name()]
		b.mu.Unlock()
		if busy {
			continue
		}
		path := filepath.Join(b.partial, e.Name())
		if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
			continue // listed while it was written, in its place by now
		}
		err := os.RemoveAll(path)
		if err == nil {
			removed++
		}
		failed = errors.Join(failed, err)
	}
	return removed, failed
}
