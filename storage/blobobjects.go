package storage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"time"
)

// Objects stores bytes under the names of BlobName or FileName: a
// directory, or part of another server.
type Objects interface {
	// Put streams r to where name says, once its digest is known. After an error
	// all of it may be there, or nothing: never a part.
	Put(ctx context.Context, r io.Reader, name func(Digest) string) (d Digest, size int64, err error)
	// Get opens what has a name, ErrNotFound if nothing has. The Read that reaches
	// the end fails where the digest is another.
	Get(ctx context.Context, name string, d Digest) (r io.ReadCloser, size int64, err error)
	// List what has a name that begins with a prefix.
	List(ctx context.Context, prefix string) ([]ObjectInfo, error)
	// Remove what has a name, durably, unless it was written again since before; the
	// zero time: whenever it was written. It reports whether it removed anything: missing
	// is false.
	Remove(ctx context.Context, name string, before time.Time) (bool, error)
}

// ObjectInfo is what has a name.
type ObjectInfo struct {
	Name string
	Size int64
	At   time.Time // of its last writing
}

// NamedBlobs is the part of Blobs that depends on names only, over two Objects. Safe
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

// Wipe removes a scope; see Blobs. Crash: some of its files are there.
func (b NamedBlobs) Wipe(ctx context.Context, s Scope) error {
	scope, err := ScopeName(s)
	if err != nil {
		return err
	}
	files, err := b.Steps.List(ctx, scope+"/")
	if err != nil {
		return err
	}
	return b.removeSteps(ctx, files, time.Time{})
}

// Sweep removes old scopes; see Blobs. It continues after an error and returns all of
// them.
func (b NamedBlobs) Sweep(ctx context.Context, age time.Duration) (removed int, failed error) {
	before := time.Now().Add(-age)
	files, err := b.Steps.List(ctx, "")
	if err != nil {
		return 0, err
	}
	scopes := make(map[string][]ObjectInfo)
	young := make(map[string]bool)
	for _, o := range files {
		scope := path.Dir(o.Name)
		scopes[scope] = append(scopes[scope], o)
		young[scope] = young[scope] || o.At.After(before)
	}
	for scope, files := range scopes {
		if young[scope] {
			continue
		}
		if err := b.removeSteps(ctx, files, before); err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		removed++
	}
	return removed, failed
}

func (b NamedBlobs) removeSteps(ctx context.Context, files []ObjectInfo, before time.Time) error {
	for _, o := range files {
		if _, err := b.Steps.Remove(ctx, o.Name, before); err != nil {
			return err
		}
	}
	return nil
}

// ListOld lists a tenant's old blobs; see Collector.
func (b NamedBlobs) ListOld(ctx context.Context, tenant string, age time.Duration) ([]string, error) {
	list, err := b.list(ctx, tenant)
	if err != nil {
		return nil, err
	}
	before := time.Now().Add(-age)
	var refs []string
	for _, o := range list {
		if ref := BlobRef(o.Name); ref != "" && !o.At.After(before) {
			refs = append(refs, ref)
		}
	}
	return refs, nil
}

// Held returns the size of a tenant's blobs in bytes.
func (b NamedBlobs) Held(ctx context.Context, tenant string) (int64, error) {
	list, err := b.list(ctx, tenant)
	sum := int64(0)
	for _, o := range list {
		sum += o.Size
	}
	return sum, err
}

// Drop removes an old blob; see Collector.
func (b NamedBlobs) Drop(ctx context.Context, tenant, ref string, age time.Duration) (bool, error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	name, _, err := BlobName(tenant, ref)
	if errors.Is(err, ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return b.Kept.Remove(ctx, name, time.Now().Add(-age))
}

// list lists a tenant's blobs.
func (b NamedBlobs) list(ctx context.Context, tenant string) ([]ObjectInfo, error) {
	under, err := TenantName(tenant)
	if err != nil {
		return nil, err
	}
	return b.Kept.List(ctx, under+"/")
}

// UntilDone is r until ctx ends, so that a long copy ends with it.
func UntilDone(ctx context.Context, r io.Reader) io.Reader { return &untilDone{ctx, r} }

type untilDone struct {
	ctx context.Context //nolint:containedctx // lives for one copy
	r   io.Reader
}

func (u *untilDone) Read(p []byte) (int, error) {
	if err := u.ctx.Err(); err != nil {
		return 0, err
	}
	return u.r.Read(p)
}
