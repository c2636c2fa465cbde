package storage

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"path"
	"regexp"
	"strconv"
	"strings"
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

// RefPrefix precedes the hex digest of a stored blob.
const RefPrefix = "cas://sha256:"

// Names under which stores on other servers keep blobs:
//
//	<tenant>/<hex digest>     blobs of a tenant
//	<tenant>/<scope>/<id>     temporary files of a step
//
// <tenant> and <scope> are hashes, so no name that a caller chooses is ever part
// of one. An id names its content and its scope.
var (
	hexDigest = regexp.MustCompile(`^[0-9a-f]{64}$`)
	fileID    = regexp.MustCompile(`^f_([A-Za-z0-9_-]{43})\.([0-9a-f]{16})$`)
)

// errNoTenant reports bytes without a tenant.
var errNoTenant = errors.New("blobs: no tenant")

// Digest is SHA-256 of a blob.
type Digest [sha256.Size]byte

// Hex of a digest, lower case.
func (d Digest) Hex() string { return hex.EncodeToString(d[:]) }

// TenantName is the name that represents a tenant.
func TenantName(tenant string) (string, error) {
	if tenant == "" {
		return "", errNoTenant
	}
	return nameHash("tenant", tenant), nil
}

// BlobName returns the place of a tenant's blob. An invalid ref is ErrNotFound.
func BlobName(tenant, ref string) (name string, d Digest, err error) {
	under, err := TenantName(tenant)
	if err != nil {
		return "", d, err
	}
	digest, ok := strings.CutPrefix(ref, RefPrefix)
	if !ok || !hexDigest.MatchString(digest) {
		return "", d, ErrNotFound
	}
	_, err = hex.Decode(d[:], []byte(digest))
	return under + "/" + digest, d, err
}

// BlobRef of a name that BlobName gave for the tenant; empty for any other.
func BlobRef(name string) string {
	_, digest, _ := strings.Cut(name, "/")
	if !hexDigest.MatchString(digest) {
		return ""
	}
	return RefPrefix + digest
}

// ScopeName is what the names of a scope's files begin with, and a slash.
func ScopeName(s Scope) (string, error) {
	under, err := TenantName(s.Tenant)
	if err != nil {
		return "", err
	}
	place := strings.TrimSpace(strconv.Itoa(s.Step) + " " + s.Ask)
	return under + "/" + nameHash("scope", s.Tenant, s.Plan, strconv.Itoa(s.Revision), place), nil
}

// FileID is the id of a content in a scope.
func FileID(scope string, d Digest) string {
	return "f_" + base64.RawURLEncoding.EncodeToString(d[:]) + "." + nameHash("file", scope)[:16]
}

// FileName is where a scope's file is. An id that is none of the scope's is
// ErrNotFound.
func FileName(scope, id string) (name string, d Digest, err error) {
	m := fileID.FindStringSubmatch(id)
	if m == nil || m[2] != nameHash("file", scope)[:16] {
		return "", d, ErrNotFound
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(m[1])
	if err != nil {
		return "", d, ErrNotFound
	}
	copy(d[:], raw)
	return scope + "/" + id, d, nil
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

// CheckedBlob is r with its digest and size checked: the Read that reaches the end
// fails where they are others, and so does one beyond size.
func CheckedBlob(r io.ReadCloser, d Digest, size int64) io.ReadCloser {
	return &checkedBlob{ReadCloser: r, h: sha256.New(), want: d, size: size}
}

type checkedBlob struct {
	io.ReadCloser
	h    hash.Hash
	want Digest
	size int64
	n    int64
}

func (c *checkedBlob) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.h.Write(p[:n])
	c.n += int64(n)
	got := Digest{}
	if errors.Is(err, io.EOF) {
		copy(got[:], c.h.Sum(nil))
	}
	if c.n > c.size || errors.Is(err, io.EOF) && (c.n != c.size || got != c.want) {
		return n, fmt.Errorf("blob sha256:%s is damaged: %d of %d bytes have digest %s", c.want.Hex(), c.n, c.size, got.Hex())
	}
	return n, err
}
