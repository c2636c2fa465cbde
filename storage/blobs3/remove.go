package blobs3

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"

	"aob.dev/writ/storage"
)

// Drop removes an old blob; see storage.Collector. No blob is kept by this process
// while it looks; another one must not keep any.
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
	b.place.Lock()
	defer b.place.Unlock()
	info, err := b.core.StatObject(ctx, b.bucket, b.cas+name, minio.StatObjectOptions{})
	if err != nil {
		if err = b.failed(ctx, err); errors.Is(err, storage.ErrNotFound) {
			err = nil
		}
		return false, err
	}
	if info.LastModified.After(time.Now().Add(-age)) {
		return false, nil
	}
	if err := b.core.RemoveObject(ctx, b.bucket, b.cas+name, minio.RemoveObjectOptions{}); err != nil {
		return false, b.failed(ctx, err)
	}
	return true, nil
}

// List all objects of the prefix whose names begin with another, however many
// answers that takes; see storage.Objects.
func (o objects) List(ctx context.Context, prefix string) (out []storage.Named, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	opts := minio.ListObjectsOptions{Prefix: o.prefix + prefix, Recursive: true, MaxKeys: o.in.page}
	for x := range o.in.core.ListObjectsIter(ctx, o.in.bucket, opts) {
		if x.Err != nil {
			return nil, o.in.failed(ctx, x.Err)
		}
		out = append(out, storage.Named{Name: strings.TrimPrefix(x.Key, o.prefix), Size: x.Size, At: x.LastModified})
	}
	return out, ctx.Err()
}

// Remove an object; see storage.Objects.
func (o objects) Remove(ctx context.Context, name string) error {
	err := o.in.core.RemoveObject(ctx, o.in.bucket, o.prefix+name, minio.RemoveObjectOptions{})
	if err == nil {
		return nil
	}
	if err = o.in.failed(ctx, err); errors.Is(err, storage.ErrNotFound) {
		return nil
	}
	return err
}
