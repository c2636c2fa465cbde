package storage

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"regexp"
	"strconv"
	"strings"
)

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

// BlobName is where a tenant's blob is. A ref that is none is ErrNotFound.
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
