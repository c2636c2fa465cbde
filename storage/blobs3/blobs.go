// Package blobs3 stores blobs in a bucket of an S3-compatible server:
//
//	<prefix>cas/<tenant>/<hex digest>        blobs of a tenant
//	<prefix>steps/<tenant>/<scope>/<id>      temporary files of a step
//
// Names are those of storage.BlobName and storage.FileName. Content goes to
// a file of this machine first, which is unlinked once it is open, since
// the key of a blob is its digest: then it is sent in one PUT, signed with that
// digest, which the server checks. So nothing under a key is ever half written,
// no temporary object or multipart upload can remain, and memory is
// bounded. A blob has at most 5 GiB, which is what S3 takes in one PUT.
//
// The PUT has no condition: under one key there is only one content, and writing
// it again repairs damage and makes it young for the collector.
//
// In a bucket that keeps versions, a removed object remains as an old version: give
// the bucket a rule that expires those.
package blobs3

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/minio/minio-go/v7"

	"aob.dev/writ/internal/egress"
	"aob.dev/writ/storage"
)

// Blobs is storage.Blobs in a bucket. Safe for concurrent use. Several processes
// may use one prefix, but only one at a time may collect, while no other stores.
type Blobs struct {
	storage.NamedBlobs
	core      *minio.Core
	transport *http.Transport
	server    egress.Server // as errors name it
	bucket    string
	spool     string
	page      int // keys of one answer to a listing; 0: as the server likes
}

var (
	_ storage.Blobs     = (*Blobs)(nil)
	_ storage.Collector = (*Blobs)(nil)
)

// askTime bounds the check that the bucket exists, retries included.
const askTime = 15 * time.Second

// Open checks that the bucket exists and may be used. A server that does not
// answer is storage.ErrUnavailable.
func Open(ctx context.Context, cfg Config) (*Blobs, error) {
	at, err := cfg.parse()
	if err != nil {
		return nil, fmt.Errorf("blobs: %w", err)
	}
	secret, err := cfg.secret()
	if err != nil {
		return nil, fmt.Errorf("blobs: %w", err)
	}
	b := &Blobs{bucket: at.bucket, spool: cfg.Spool, server: egress.Server{
		Name: "S3 bucket " + at.bucket + " at " + at.host, Unaffected: "blobs that are kept there stay, and none is half written",
		Address: "blobs (--blobs)", Secret: "blobs_credentials (--blobs-credentials), or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
		CA: "blobs_ca (--blobs-ca)", Try: "writ doctor",
	}}
	b.NamedBlobs = storage.NamedBlobs{
		Kept: objects{b, at.prefix + "cas/", new(sync.RWMutex)}, Steps: objects{b, at.prefix + "steps/", new(sync.RWMutex)},
	}
	if b.core, b.transport, err = at.connect(secret); err != nil {
		return nil, fmt.Errorf("blobs: %w", err)
	}
	late, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	there, err := b.core.BucketExists(late, b.bucket)
	if err != nil {
		return nil, b.failed(ctx, err)
	}
	if !there {
		return nil, b.noBucket()
	}
	return b, nil
}

// Close ends idle connections.
func (b *Blobs) Close() error {
	b.transport.CloseIdleConnections()
	return nil
}

// objects are the objects under one prefix of the bucket.
type objects struct {
	in     *Blobs
	prefix string
	place  *sync.RWMutex // nothing old is removed while something is put
}

// Put spools r and sends it under its key; see storage.Objects.
func (o objects) Put(ctx context.Context, r io.Reader, name func(storage.Digest) string) (d storage.Digest, size int64, err error) {
	f, err := os.CreateTemp(o.in.spool, "writ-blob-")
	if err != nil {
		return d, 0, err
	}
	_ = os.Remove(f.Name()) // so that no crash leaves it; where that cannot be, it is tried again
	defer func() {
		err = errors.Join(err, f.Close())
		_ = os.Remove(f.Name())
	}()
	h := sha256.New()
	if size, err = io.Copy(io.MultiWriter(f, h), storage.UntilDone(ctx, r)); err != nil {
		return d, size, err
	}
	copy(d[:], h.Sum(nil))
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return d, size, err
	}
	o.place.RLock()
	defer o.place.RUnlock()
	// Not as a stream of signed chunks: the digest of the whole is known, and signed.
	opts := minio.PutObjectOptions{ContentType: "application/octet-stream", DisableContentSha256: true}
	if _, err := o.in.core.PutObject(ctx, o.in.bucket, o.prefix+name(d), readSeeker{f}, size, "", d.Hex(), opts); err != nil {
		return d, size, o.in.failed(ctx, err)
	}
	return d, size, nil
}

// readSeeker hides that a file can be closed: the client closes what it sends, and
// could not send it a second time.
type readSeeker struct{ io.ReadSeeker }

// Get opens an object; its bytes come as they are read. See storage.Objects.
func (o objects) Get(ctx context.Context, name string, d storage.Digest) (io.ReadCloser, int64, error) {
	r, info, _, err := o.in.core.GetObject(ctx, o.in.bucket, o.prefix+name, minio.GetObjectOptions{})
	if err != nil {
		return nil, 0, o.in.failed(ctx, err)
	}
	return storage.CheckedBlob(r, d, info.Size), info.Size, nil
}

// failed translates the error of a call: a missing object is ErrNotFound, a failure that
// may pass ErrUnavailable. The error of the caller's context stays itself.
func (b *Blobs) failed(ctx context.Context, err error) error {
	answer := minio.ToErrorResponse(err)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case answer.Code == minio.NoSuchKey:
		return storage.ErrNotFound
	case answer.Code == minio.NoSuchBucket:
		return b.noBucket()
	case strings.Contains(err.Error(), "Connection closed by foreign host"): // what minio makes of an EOF
		err = io.ErrUnexpectedEOF
	case answer.StatusCode != 0:
		r := egress.Status(answer.StatusCode)
		r.Err = err
		err = r
	}
	err = b.server.Fault(err)
	if answer.StatusCode == http.StatusForbidden {
		return err
	}
	return storage.Unavailable(err)
}

func (b *Blobs) noBucket() error {
	return b.server.Fault(&egress.ReasonError{Message: "there is no such bucket", Mend: egress.Name})
}

// List all objects of the prefix whose names begin with another, however many
// answers that takes; see storage.Objects.
func (o objects) List(ctx context.Context, prefix string) (out []storage.ObjectInfo, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	opts := minio.ListObjectsOptions{Prefix: o.prefix + prefix, Recursive: true, MaxKeys: o.in.page}
	for x := range o.in.core.ListObjectsIter(ctx, o.in.bucket, opts) {
		if x.Err != nil {
			return nil, o.in.failed(ctx, x.Err)
		}
		out = append(out, storage.ObjectInfo{Name: strings.TrimPrefix(x.Key, o.prefix), Size: x.Size, At: x.LastModified})
	}
	return out, ctx.Err()
}

// Remove removes an object; see storage.Objects. This process puts nothing under its key
// while it checks the time; another process must not either.
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
