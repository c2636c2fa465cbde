package datadir

import (
	"bytes"
	"context"
	"encoding/json"
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
	"aob.dev/writ/storage/quota"
)

// BlobsAt says where blobs are. A data directory remembers where its own are, so
// that every command finds them; the zero value is that place, and of a new
// directory it is the directory.
type BlobsAt struct {
	// URL is InDir, nats://… or tls://… (storage/blobnats), or s3://… (storage/blobs3).
	URL string `json:"url"`
	// Credentials and CA are files, of that server; empty: those of its package.
	Credentials string `json:"credentials,omitempty"`
	CA          string `json:"ca,omitempty"`
}

// InDir is the place of blobs that are in the data directory.
const InDir = "dir"

// Local says that no server is asked.
func (at BlobsAt) Local() bool { return at.URL == "" || at.URL == InDir }

func (at BlobsAt) ca() ([]byte, error) {
	if at.CA == "" {
		return nil, nil
	}
	return os.ReadFile(at.CA)
}

// onS3: the server speaks the protocol of S3; else that of NATS.
func (at BlobsAt) onS3() bool { return strings.HasPrefix(at.URL, "s3://") }

// Validate says what is wrong with a place, without asking a server.
func (at BlobsAt) Validate() error {
	if at.Local() {
		if at.Credentials != "" || at.CA != "" {
			return errors.New("credentials and certificates are of a server, and blobs names none")
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

// Look says whether a server answers and can keep blobs. Nothing is made.
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

// placeFile is where a directory remembers its place, if that is another.
func placeFile(dir string) string { return filepath.Join(dir, "blobs", "place.json") }

// PlaceOf a directory's blobs, as it remembers it.
func PlaceOf(dir string) (at BlobsAt, err error) {
	raw, err := os.ReadFile(placeFile(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return BlobsAt{URL: InDir}, nil
	}
	if err != nil {
		return at, err
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&at); err != nil {
		return at, fmt.Errorf("%s: %w", placeFile(dir), err)
	}
	return at, at.Validate()
}

// Remember a place, durably.
func (at BlobsAt) Remember(dir string) error {
	file := placeFile(dir)
	if at.Local() {
		return durable.Remove(file)
	}
	raw, err := json.Marshal(at)
	if err != nil {
		return err
	}
	if err := durable.MkdirAll(filepath.Dir(file)); err != nil {
		return err
	}
	return durable.Write(file, append(raw, '\n'))
}

// Of is where a directory's blobs are, once a configuration has been asked: it may
// name other credentials, but another place only of a directory that has no blobs.
func (at BlobsAt) Of(dir string) (BlobsAt, error) {
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
	return at, fmt.Errorf("the blobs of %s are in %s, not in %s: bring them there with writ storage move, or leave blobs as it was", dir, held.URL, at.URL)
}

// OpenBlobs opens the blobs of a directory where it remembers them.
func OpenBlobs(ctx context.Context, dir string) (quota.Store, error) {
	at, err := PlaceOf(dir)
	if err != nil {
		return nil, err
	}
	return at.Open(ctx, dir)
}

// lazyBlobs are those of a directory, for reading: their server is asked when
// something is read first. Safe for concurrent use.
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

// Close ends what was opened.
func (l *lazyBlobs) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open == nil {
		return nil
	}
	return l.open.Close()
}

// Usage counts the files of a directory and what they hold; those that go away
// meanwhile are not counted.
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
