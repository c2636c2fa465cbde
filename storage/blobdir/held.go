package blobdir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// Held is how many bytes of blobs a tenant has.
func (b *Blobs) Held(ctx context.Context, tenant string) (int64, error) {
	dir, err := b.tenantDir(b.cas, tenant)
	if err != nil {
		return 0, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, fmt.Errorf("count blobs: %w", err)
	}
	sum := int64(0)
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return 0, fmt.Errorf("count blobs: %w", err)
		}
		sum += info.Size()
	}
	return sum, nil
}
