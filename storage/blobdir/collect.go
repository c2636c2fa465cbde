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

var _ storage.Collector = (*Blobs)(nil)

// Aged lists a tenant's old blobs; see storage.Collector.
func (b *Blobs) Aged(ctx context.Context, tenant string, age time.Duration) ([]string, error) {
	kept, err := b.kept(ctx, tenant)
	before := time.Now().Add(-age)
	var refs []string
	for _, info := range kept {
		if ref := storage.BlobRef("/" + info.Name()); ref != "" && info.ModTime().Before(before) {
			refs = append(refs, ref)
		}
	}
	return refs, err
}

// Held is how many bytes of blobs a tenant has.
func (b *Blobs) Held(ctx context.Context, tenant string) (int64, error) {
	kept, err := b.kept(ctx, tenant)
	sum := int64(0)
	for _, info := range kept {
		sum += info.Size()
	}
	return sum, err
}

// kept are a tenant's blobs; none after an error.
func (b *Blobs) kept(ctx context.Context, tenant string) (kept []fs.FileInfo, err error) {
	under, err := storage.TenantName(tenant)
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(filepath.Join(b.cas, under))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list blobs: %w", err)
	}
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("list blobs: %w", err)
		}
		kept = append(kept, info)
	}
	return kept, nil
}

// Drop removes an old blob; see storage.Collector. Keeping a blob again puts a
// new file in its place, which is young, and no file is put while this looks.
func (b *Blobs) Drop(ctx context.Context, tenant, ref string, age time.Duration) (bool, error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	name, _, err := storage.BlobName(tenant, ref)
	if errors.Is(err, storage.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	path := filepath.Join(b.cas, name)
	b.place.Lock()
	defer b.place.Unlock()
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.ModTime().Before(time.Now().Add(-age)) {
		return false, nil
	}
	if err == nil {
		err = os.Remove(path)
	}
	if err == nil {
		err = durable.SyncDir(filepath.Dir(path))
	}
	if err != nil {
		return false, fmt.Errorf("drop blob: %w", err)
	}
	return true, nil
}
