package blobs3

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"

	"aob.dev/writ/storage"
)

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

// Remove an object; see storage.Objects. Nothing is put beside it by this process
// while it looks at the time; another process must not put anything then.
func (o objects) Remove(ctx context.Context, name string, before time.Time) (bool, error) {
	if !before.IsZero() {
		o.place.Lock()
		defer o.place.Unlock()
		info, err := o.in.core.StatObject(ctx, o.in.bucket, o.prefix+name, minio.StatObjectOptions{})
		if err != nil {
			return false, o.in.unlessMissing(ctx, err)
		}
		if info.LastModified.After(before) {
			return false, nil
		}
	}
	if err := o.in.core.RemoveObject(ctx, o.in.bucket, o.prefix+name, minio.RemoveObjectOptions{}); err != nil {
		return false, o.in.unlessMissing(ctx, err)
	}
	return true, nil
}

// unlessMissing is the error of a server's answer, nil if the object is missing.
func (b *Blobs) unlessMissing(ctx context.Context, err error) error {
	if err = b.failed(ctx, err); errors.Is(err, storage.ErrNotFound) {
		return nil
	}
	return err
}
