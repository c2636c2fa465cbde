package storage

import (
	"context"
	"fmt"
	"io"
)

// Objects is a place on another server that keeps bytes under the names of
// BlobName or FileName.
type Objects interface {
	// Put streams r to where name says, once its digest is known. After an error
	// all of it may be there, or nothing: never a part.
	Put(ctx context.Context, r io.Reader, name func(Digest) string) (d Digest, size int64, err error)
	// Get opens what has a name, ErrNotFound if nothing has. The Read that reaches
	// the end fails where the digest is another.
	Get(ctx context.Context, name string, d Digest) (r io.ReadCloser, size int64, err error)
}

// NamedBlobs is what of Blobs follows from the names alone, over two Objects. Safe
// for concurrent use if they are.
type NamedBlobs struct{ Kept, Steps Objects }

// Put streams a temporary file into a scope; see Blobs.
func (b NamedBlobs) Put(ctx context.Context, s Scope, r io.Reader) (File, error) {
	scope, err := ScopeName(s)
	if err != nil {
		return File{}, err
	}
	d, size, err := b.Steps.Put(ctx, r, func(d Digest) string { return scope + "/" + FileID(scope, d) })
	if err != nil {
		return File{}, fmt.Errorf("put file: %w", err)
	}
	return File{ID: FileID(scope, d), Size: size, SHA256: "sha256:" + d.Hex()}, nil
}

// Open reads a file of a scope; see Blobs. The Read that reaches the end fails
// where the digest is another.
func (b NamedBlobs) Open(ctx context.Context, s Scope, id string) (io.ReadCloser, File, error) {
	if err := ctx.Err(); err != nil {
		return nil, File{}, err
	}
	scope, err := ScopeName(s)
	if err != nil {
		return nil, File{}, err
	}
	name, d, err := FileName(scope, id)
	if err != nil {
		return nil, File{}, err
	}
	r, size, err := b.Steps.Get(ctx, name, d)
	if err != nil {
		return nil, File{}, err
	}
	return r, File{ID: id, Size: size, SHA256: "sha256:" + d.Hex()}, nil
}

// Keep stores a blob under its digest; see Blobs.
func (b NamedBlobs) Keep(ctx context.Context, tenant string, r io.Reader) (string, int64, error) {
	under, err := TenantName(tenant)
	if err != nil {
		return "", 0, err
	}
	d, size, err := b.Kept.Put(ctx, r, func(d Digest) string { return under + "/" + d.Hex() })
	if err != nil {
		return "", 0, fmt.Errorf("keep blob: %w", err)
	}
	return RefPrefix + d.Hex(), size, nil
}

// Fetch reads a tenant's blob; see Blobs.
func (b NamedBlobs) Fetch(ctx context.Context, tenant, ref string) (io.ReadCloser, int64, error) {
	if err := ctx.Err(); err != nil {
		return nil, 0, err
	}
	name, d, err := BlobName(tenant, ref)
	if err != nil {
		return nil, 0, err
	}
	return b.Kept.Get(ctx, name, d)
}
