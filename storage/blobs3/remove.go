package blobs3

import (
	"context"
	"errors"
	"path"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"

	"aob.dev/writ/storage"
)

// Wipe removes a scope; see storage.Blobs. Crash: some of its files are there.
func (b *Blobs) Wipe(ctx context.Context, s storage.Scope) error {
	scope, err := storage.ScopeName(s)
	if err != nil {
		return err
	}
	list, err := b.list(ctx, b.steps+scope+"/")
	if err != nil {
		return err
	}
	return b.removeAll(ctx, list)
}

// Sweep removes old scopes; see storage.Blobs. Nothing else can be left. It goes on
// after an error and returns all of them.
func (b *Blobs) Sweep(ctx context.Context, age time.Duration) (removed int, failed error) {
	before := time.Now().Add(-age)
	list, err := b.list(ctx, b.steps)
	if err != nil {
		return 0, err
	}
	scopes := make(map[string][]minio.ObjectInfo)
	young := make(map[string]bool)
	for _, o := range list {
		scope := path.Dir(o.Key)
		scopes[scope] = append(scopes[scope], o)
		young[scope] = young[scope] || o.LastModified.After(before)
	}
	for scope, files := range scopes {
		if young[scope] {
			continue
		}
		if err := b.removeAll(ctx, files); err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		removed++
	}
	return removed, failed
}

// Aged lists a tenant's old blobs; see storage.Collector.
func (b *Blobs) Aged(ctx context.Context, tenant string, age time.Duration) ([]string, error) {
	under, err := storage.TenantName(tenant)
	if err != nil {
		return nil, err
	}
	list, err := b.list(ctx, b.cas+under+"/")
	if err != nil {
		return nil, err
	}
	before := time.Now().Add(-age)
	var refs []string
	for _, o := range list {
		if ref := storage.BlobRef(strings.TrimPrefix(o.Key, b.cas)); ref != "" && !o.LastModified.After(before) {
			refs = append(refs, ref)
		}
	}
	return refs, nil
}

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

// list all objects below a prefix, however many answers that takes.
func (b *Blobs) list(ctx context.Context, prefix string) (out []minio.ObjectInfo, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	for o := range b.core.ListObjectsIter(ctx, b.bucket, minio.ListObjectsOptions{Prefix: prefix, Recursive: true, MaxKeys: b.page}) {
		if o.Err != nil {
			return nil, b.failed(ctx, o.Err)
		}
		out = append(out, o)
	}
	return out, ctx.Err()
}

// removeAll removes objects; one that is gone is fine.
func (b *Blobs) removeAll(ctx context.Context, list []minio.ObjectInfo) error {
	for _, o := range list {
		if err := b.core.RemoveObject(ctx, b.bucket, o.Key, minio.RemoveObjectOptions{}); err != nil {
			if err := b.failed(ctx, err); !errors.Is(err, storage.ErrNotFound) {
				return err
			}
		}
	}
	return nil
}
