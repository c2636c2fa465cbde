// Package blobdir keeps blobs in a directory of one machine.
//
//	scopes/<tenant>/<scope>/<id>.<digest>   temporary files of a step
//	cas/<tenant>/<digest>                   blobs of a tenant
//	partial/                                what is being written or removed
//
// <tenant> and <scope> are hashes, so no name that a caller chooses is ever part
// of a path. Directories are 0700, files 0600.
//
// A file is written in partial/, synced, renamed into place, and its directory is
// synced before the call returns. A crash before the rename leaves a partial
// file, which the next Sweep removes; a crash after it leaves the whole file.
// Removing goes the other way: a scope is renamed into partial/ and then deleted.
//
// One process at a time uses a directory.
package blobdir

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"aob.dev/writ/internal/durable"
	"aob.dev/writ/internal/failpoint"
	"aob.dev/writ/storage"
)

var (
	hexDigest = regexp.MustCompile(`^[0-9a-f]{64}$`)
	fileID    = regexp.MustCompile(`^f_[0-9a-f]{32}$`)
)

// Blobs is storage.Blobs in a directory. Safe for concurrent use.
type Blobs struct {
	scopes, cas, partial string

	// place lets files be put into scopes together, and lets a scope be removed
	// only while none is: a directory must not vanish under a rename.
	place sync.RWMutex

	mu     sync.Mutex // guards active
	active map[string]bool
}

var _ storage.Blobs = (*Blobs)(nil)

// Open opens or creates the directory.
func Open(dir string) (*Blobs, error) {
	b := &Blobs{
		scopes: filepath.Join(dir, "scopes"), cas: filepath.Join(dir, "cas"), partial: filepath.Join(dir, "partial"),
		active: make(map[string]bool),
	}
	for _, d := range []string{b.scopes, b.cas, b.partial} {
		if err := durable.MkdirAll(d); err != nil {
			return nil, fmt.Errorf("open blobs: %w", err)
		}
	}
	return b, nil
}

// Close does nothing: what is written is durable when it is said to be.
func (*Blobs) Close() error { return nil }

// Put streams a temporary file into a scope; see storage.Blobs.
func (b *Blobs) Put(ctx context.Context, s storage.Scope, r io.Reader) (storage.File, error) {
	dir, err := b.scopeDir(s)
	if err != nil {
		return storage.File{}, err
	}
	p, err := b.receive(ctx, r)
	if err != nil {
		return storage.File{}, fmt.Errorf("put file: %w", err)
	}
	defer b.discard(p.path)
	id := "f_" + nameHash(filepath.Base(dir), p.digest)
	if err := b.settle(p.path, dir, id+"."+p.digest); err != nil {
		return storage.File{}, fmt.Errorf("put file: %w", err)
	}
	return storage.File{ID: id, Size: p.size, SHA256: "sha256:" + p.digest}, nil
}

// Open reads a file of a scope; see storage.Blobs. Its digest is checked while
// reading: the last Read fails on a mismatch.
func (b *Blobs) Open(ctx context.Context, s storage.Scope, id string) (io.ReadCloser, storage.File, error) {
	dir, err := b.scopeDir(s)
	if err != nil {
		return nil, storage.File{}, err
	}
	if err := ctx.Err(); err != nil {
		return nil, storage.File{}, err
	}
	if !fileID.MatchString(id) {
		return nil, storage.File{}, storage.ErrNotFound
	}
	name, digest, err := find(dir, id)
	if err != nil {
		return nil, storage.File{}, err
	}
	f, size, err := openChecked(filepath.Join(dir, name), digest)
	if err != nil {
		return nil, storage.File{}, err
	}
	return f, storage.File{ID: id, Size: size, SHA256: "sha256:" + digest}, nil
}

// Keep stores a blob under its digest; see storage.Blobs.
func (b *Blobs) Keep(ctx context.Context, tenant string, r io.Reader) (string, int64, error) {
	dir, err := b.tenantDir(b.cas, tenant)
	if err != nil {
		return "", 0, err
	}
	p, err := b.receive(ctx, r)
	if err != nil {
		return "", 0, fmt.Errorf("keep blob: %w", err)
	}
	defer b.discard(p.path)
	if err := b.settle(p.path, dir, p.digest); err != nil {
		return "", 0, fmt.Errorf("keep blob: %w", err)
	}
	return storage.RefPrefix + p.digest, p.size, nil
}

// Fetch reads a tenant's blob; see storage.Blobs. A malformed ref is ErrNotFound.
func (b *Blobs) Fetch(ctx context.Context, tenant, ref string) (io.ReadCloser, int64, error) {
	dir, err := b.tenantDir(b.cas, tenant)
	if err != nil {
		return nil, 0, err
	}
	if err := ctx.Err(); err != nil {
		return nil, 0, err
	}
	digest, ok := strings.CutPrefix(ref, storage.RefPrefix)
	if !ok || !hexDigest.MatchString(digest) {
		return nil, 0, storage.ErrNotFound
	}
	return openChecked(filepath.Join(dir, digest), digest)
}

// settle puts a received file in its place for good.
func (b *Blobs) settle(path, dir, name string) error {
	b.place.RLock()
	defer b.place.RUnlock()
	if err := durable.MkdirAll(dir); err != nil {
		return err
	}
	failpoint.Hit(failpoint.BlobReceived)
	if err := os.Rename(path, filepath.Join(dir, name)); err != nil { // synced below, behind its failpoint
		return err
	}
	failpoint.Hit(failpoint.BlobRenamed)
	if err := durable.SyncDir(dir); err != nil {
		return err
	}
	failpoint.Hit(failpoint.BlobKept)
	return nil
}

var errNoTenant = errors.New("blobdir: no tenant")

func (b *Blobs) tenantDir(under, tenant string) (string, error) {
	if tenant == "" {
		return "", errNoTenant
	}
	return filepath.Join(under, nameHash("tenant", tenant)), nil
}

func (b *Blobs) scopeDir(s storage.Scope) (string, error) {
	dir, err := b.tenantDir(b.scopes, s.Tenant)
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, nameHash("scope", s.Tenant, s.Plan, fmt.Sprint(s.Revision), fmt.Sprint(s.Step))), nil
}

// nameHash is 128 bits of the SHA-256 over length-prefixed parts, in hex.
func nameHash(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(p))))
		h.Write([]byte(p))
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}
