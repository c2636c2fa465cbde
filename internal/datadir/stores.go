package datadir

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"aob.dev/writ/internal/durable"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/blobdir"
	"aob.dev/writ/storage/blobnats"
	"aob.dev/writ/storage/blobs3"
	"aob.dev/writ/storage/opensearch"
	"aob.dev/writ/storage/quota"
	"aob.dev/writ/storage/sqlite"
)

// BlobsAt is the place of blobs. A data directory records the place of its blobs, so that every
// command finds them. The zero value is the recorded place. A new directory stores its blobs
// itself.
type BlobsAt struct {
	// URL is InDir, nats://… or tls://… (storage/blobnats), or s3://… (storage/blobs3).
	URL string `json:"url"`
	// Credentials and CA are files for that server; empty: the defaults of its package.
	Credentials string `json:"credentials,omitempty"`
	CA          string `json:"ca,omitempty"`
}

// InDir is the URL of blobs in the data directory.
const InDir = "dir"

// Local reports whether the blobs are on no server.
func (at BlobsAt) Local() bool { return at.URL == "" || at.URL == InDir }

func (at BlobsAt) ca() ([]byte, error) {
	if at.CA == "" {
		return nil, nil
	}
	return os.ReadFile(at.CA)
}

// onS3 reports whether the server speaks S3. Otherwise it speaks NATS.
func (at BlobsAt) onS3() bool { return strings.HasPrefix(at.URL, "s3://") }

// Validate returns the fault of a place, without asking a server.
func (at BlobsAt) Validate() error {
	if at.Local() {
		if at.Credentials != "" || at.CA != "" {
			return errors.New("credentials and certificates need a server, and blobs names none")
		}
		return nil
	}
	ca, err := at.ca()
	switch scheme, _, _ := strings.Cut(at.URL, "://"); {
	case err != nil:
		return err
	case scheme == "nats" || scheme == "tls":
		return blobnats.Config{URL: at.URL, Credentials: at.Credentials, CA: ca}.Validate()
	case scheme == "s3":
		return blobs3.Config{URL: at.URL, Credentials: at.Credentials, CA: ca}.Validate()
	default:
		return errors.New(`it is none of "dir", nats://…, tls://… and s3://…`)
	}
}

// Open a place. dir is the data directory.
func (at BlobsAt) Open(ctx context.Context, dir string) (quota.Store, error) {
	if at.Local() {
		return blobdir.Open(filepath.Join(dir, "blobs"))
	}
	ca, err := at.ca()
	if err != nil {
		return nil, err
	}
	if !at.onS3() {
		return blobnats.Open(ctx, blobnats.Config{URL: at.URL, Credentials: at.Credentials, CA: ca})
	}
	spool := filepath.Join(dir, "blobs", "spool")
	if err := os.MkdirAll(spool, 0o700); err != nil {
		return nil, err
	}
	return blobs3.Open(ctx, blobs3.Config{URL: at.URL, Credentials: at.Credentials, CA: ca, Spool: spool})
}

// Look checks that a server answers and can store blobs. It creates nothing.
func (at BlobsAt) Look(ctx context.Context) error {
	ca, err := at.ca()
	if err != nil {
		return err
	}
	if !at.onS3() {
		return blobnats.Look(ctx, blobnats.Config{URL: at.URL, Credentials: at.Credentials, CA: ca})
	}
	b, err := blobs3.Open(ctx, blobs3.Config{URL: at.URL, Credentials: at.Credentials, CA: ca})
	if err != nil {
		return err
	}
	return b.Close()
}

// placeFile is where a directory remembers the place of its blobs, if they are elsewhere.
func placeFile(dir string) string { return filepath.Join(dir, "blobs", "place.json") }

// PlaceOf a directory's blobs, as it remembers it.
func PlaceOf(dir string) (at BlobsAt, err error) {
	there, err := durable.ReadExactJSON(placeFile(dir), &at)
	if !there && err == nil {
		at.URL = InDir
	}
	if err != nil {
		return at, err
	}
	return at, at.Validate()
}

// Remember a place, durably.
func (at BlobsAt) Remember(dir string) error {
	if at.Local() {
		return durable.Remove(placeFile(dir))
	}
	return durable.WriteJSON(placeFile(dir), at)
}

// Place is where a directory's blobs are under a configuration. The configuration may name
// other credentials. It may name another place only if the directory has no blobs.
func (at BlobsAt) Place(dir string) (BlobsAt, error) {
	held, err := PlaceOf(dir)
	if err != nil || at.URL == "" {
		return held, err
	}
	if held.URL == at.URL {
		return at, nil
	}
	if held.Local() {
		kept, _, err := Usage(filepath.Join(dir, "blobs", "cas"))
		if err != nil || kept == 0 {
			return at, err
		}
	}
	return at, fmt.Errorf("the blobs of %s are in %s, not in %s: set blobs as it was", dir, held.URL, at.URL)
}

// OpenBlobs opens the blobs of a directory where it remembers them.
func OpenBlobs(ctx context.Context, dir string) (quota.Store, error) {
	at, err := PlaceOf(dir)
	if err != nil {
		return nil, err
	}
	return at.Open(ctx, dir)
}

// SystemBlob reads a blob of tenant system of a directory.
func SystemBlob(dir string) func(ctx context.Context, digest string) ([]byte, error) {
	return func(ctx context.Context, digest string) (data []byte, err error) {
		b, err := OpenBlobs(ctx, dir)
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, b.Close()) }()
		return storage.ReadSystem(ctx, b, digest)
	}
}

// lazyBlobs are the blobs of a directory, for reading. They are opened at the first read.
// Safe for concurrent use.
type lazyBlobs struct {
	storage.Blobs // nil: nothing is written
	dir           string

	mu   sync.Mutex // guards open
	open quota.Store
}

func (l *lazyBlobs) get(ctx context.Context) (b quota.Store, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open == nil {
		if b, err = OpenBlobs(ctx, l.dir); err != nil {
			return nil, err
		}
		l.open = b
	}
	return l.open, nil
}

// Open implements storage.Blobs.
func (l *lazyBlobs) Open(ctx context.Context, s storage.Scope, id string) (io.ReadCloser, storage.File, error) {
	b, err := l.get(ctx)
	if err != nil {
		return nil, storage.File{}, err
	}
	return b.Open(ctx, s, id)
}

// Fetch implements storage.Blobs.
func (l *lazyBlobs) Fetch(ctx context.Context, tenant, ref string) (io.ReadCloser, int64, error) {
	b, err := l.get(ctx)
	if err != nil {
		return nil, 0, err
	}
	return b.Fetch(ctx, tenant, ref)
}

// Close closes the opened store.
func (l *lazyBlobs) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open == nil {
		return nil
	}
	return l.open.Close()
}

// Usage counts the files of a directory and their bytes. It ignores files that disappear
// meanwhile.
func Usage(dir string) (files, bytes int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			var info fs.FileInfo
			if info, err = d.Info(); err == nil {
				files, bytes = files+1, bytes+info.Size()
			}
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	return files, bytes, err
}

// DocumentsAt is the place of documents: the OpenSearch at its URL or, without a URL, in
// the data directory. Its Check is set when it is opened.
type DocumentsAt = opensearch.Config

// Documents is a store that can be closed.
type Documents interface {
	storage.Documents
	Close() error
}

// OpenDocuments opens the documents of a directory. cache is the page cache of a store in
// the directory, in bytes. An OpenSearch may be down; the caller must call Migrate.
func OpenDocuments(ctx context.Context, dir string, at DocumentsAt, cache int64) (Documents, error) {
	if at.URL != "" {
		d, err := RemoteDocuments(at)
		if err != nil {
			return nil, err // not d: as an interface it would not be nil
		}
		return d, nil
	}
	dimension := cmp.Or(at.Dimension, storage.DefaultDimension)
	d, err := sqlite.OpenDocuments(ctx, DocumentsFile(dir), storage.NewCheck(dimension), cache)
	if err != nil {
		return nil, err
	}
	if err := sameDimension(ctx, d, dimension); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// RemoteDocuments opens an OpenSearch as it is. It creates nothing there.
func RemoteDocuments(at DocumentsAt) (*opensearch.Documents, error) {
	at.Check = storage.NewCheck(cmp.Or(at.Dimension, storage.DefaultDimension))
	return opensearch.Open(at)
}

// sameDimension checks the dimension of stored vectors: vectors of another dimension would
// never be compared. An OpenSearch checks it itself.
func sameDimension(ctx context.Context, d *sqlite.Documents, dimension int) error {
	stored, err := d.Dimension(ctx)
	if err == nil && stored != 0 && stored != dimension {
		err = fmt.Errorf("vector_dimension: is %d, and the store holds vectors of %d numbers", dimension, stored)
	}
	return err
}
