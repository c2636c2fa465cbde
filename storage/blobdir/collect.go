package blobdir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"aob.dev/writ/internal/durable"
	"aob.dev/writ/storage"
)

var _ storage.Collector = (*Blobs)(nil)

// Aged lists a tenant's old blobs; see storage.Collector.
func (b *Blobs) Aged(ctx context.Context, tenant string, age time.Duration) ([]string, error) {
	dir, err := b.tenantDir(b.cas, tenant)
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list blobs: %w", err)
	}
	before := time.Now().Add(-age)
	var refs []string
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
		if hexDigest.MatchString(e.Name()) && info.ModTime().Before(before) {
			refs = append(refs, storage.RefPrefix+e.Name())
		}
	}
	return refs, nil
}

// Drop removes an old blob; see storage.Collector. Keeping a blob again puts a
// new file in its place, which is young, and no file is put while this looks.
func (b *Blobs) Drop(ctx context.Context, tenant, ref string, age time.Duration) (bool, error) {
	dir, err := b.tenantDir(b.cas, tenant)
	if err != nil {
		return false, err
	}
	if err := ctx.Err(); err != nil {
		return false, err
	}
	digest, ok := strings.CutPrefix(ref, storage.RefPrefix)
	if !ok || !hexDigest.MatchString(digest) {
		return false, nil
	}
	path := filepath.Join(dir, digest)
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
		err = durable.SyncDir(dir)
	}
	if err != nil {
		return false, fmt.Errorf("drop blob: %w", err)
	}
	return true, nil
}
