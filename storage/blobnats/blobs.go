// Package blobnats stores blobs in two object stores (buckets) of a NATS server:
// <bucket>_cas for content-addressed blobs, <bucket>_steps for temporary files. Names are
// those of storage.BlobName and storage.FileName, and the layout is that of NATS
// (ADR-20), so `nats object` reads it.
//
// Writing is our own: a blob is sent in chunks of which a few are on their way at
// a time, and its name is published when the server has acknowledged all of them. So a
// name never refers to half a blob, and memory is bounded. A crash leaves
// chunks without a name, which Sweep removes. A name that is written again
// gets new chunks; the old ones remain for current readers, until Sweep.
//
// Bytes are as durable as the server makes them when it acknowledges: with three
// replicas, or with sync_interval "always".
package blobnats

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"aob.dev/writ/bus"
	"aob.dev/writ/internal/egress"
	"aob.dev/writ/storage"
)

// Blobs is storage.Blobs on a NATS server. Safe for concurrent use, and by several
// processes.
type Blobs struct {
	storage.NamedBlobs
	nc          *nats.Conn
	kept, steps *bucket
}

var (
	_ storage.Blobs     = (*Blobs)(nil)
	_ storage.Collector = (*Blobs)(nil)
)

// Open connects, and creates missing buckets; existing ones
// stay as they are and are refused if they cannot store blobs. A server that
// does not answer is storage.ErrUnavailable; a connection that is lost later is
// restored.
func Open(ctx context.Context, cfg Config) (*Blobs, error) { return open(ctx, cfg, true) }

// Look does what Open does, but makes nothing: a missing bucket is no error.
func Look(ctx context.Context, cfg Config) error {
	b, err := open(ctx, cfg, false)
	if err != nil {
		return err
	}
	return b.Close()
}

func open(ctx context.Context, cfg Config, create bool) (b *Blobs, err error) {
	at, err := cfg.parse()
	if err != nil {
		return nil, err
	}
	b = &Blobs{}
	closed := make(chan struct{})
	if b.nc, err = at.connect(closed); err != nil {
		return nil, storage.Unavailable(at.fault(err))
	}
	js, err := jetstream.New(b.nc, jetstream.WithDefaultTimeout(answerTime), jetstream.WithPublishAsyncTimeout(answerTime))
	if err == nil {
		b.kept, err = openBucket(ctx, js, closed, at, "_cas", create)
	}
	if err == nil {
		b.steps, err = openBucket(ctx, js, closed, at, "_steps", create)
	}
	if err != nil {
		b.nc.Close()
		return nil, err
	}
	b.NamedBlobs = storage.NamedBlobs{Kept: b.kept, Steps: b.steps}
	return b, nil
}

// Close ends the connection.
func (b *Blobs) Close() error {
	b.nc.Close()
	return nil
}

// Get opens an object; see storage.Objects.
func (b *bucket) Get(ctx context.Context, name string, d storage.Digest) (io.ReadCloser, int64, error) {
	info, _, err := b.info(ctx, name)
	if err != nil {
		return nil, 0, err
	}
	size := int64(info.Size) //nolint:gosec // G115: of bytes that were counted
	return storage.CheckedBlob(&chunks{ctx: ctx, b: b, subject: b.chunk(info.NUID), left: size}, d, size), size, nil
}

// info of an object, and its message.
func (b *bucket) info(ctx context.Context, name string) (info jetstream.ObjectInfo, m *jetstream.RawStreamMsg, err error) {
	m, err = b.stream.GetLastMsgForSubject(ctx, b.meta(name))
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return info, nil, storage.ErrNotFound
	}
	if err != nil {
		return info, nil, b.failed(ctx, err)
	}
	if err := json.Unmarshal(m.Data, &info); err != nil {
		return info, nil, fmt.Errorf("blob %s: %w", name, err)
	}
	if info.Deleted { // with another tool
		return info, nil, storage.ErrNotFound
	}
	return info, m, nil
}

// chunks are read one at a time.
type chunks struct {
	ctx     context.Context //nolint:containedctx // lives as long as the reading
	b       *bucket
	subject string
	seq     uint64 // sequence of the last one
	data    []byte // what is not read of it
	left    int64  // bytes of the object
}

func (c *chunks) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if len(c.data) == 0 {
		if c.left <= 0 {
			return 0, io.EOF
		}
		m, err := c.b.stream.GetMsg(c.ctx, c.seq+1, jetstream.WithGetMsgSubject(c.subject))
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			return 0, fmt.Errorf("blob is damaged: its last %d bytes are missing", c.left)
		}
		if err != nil {
			return 0, c.b.failed(c.ctx, err)
		}
		c.seq, c.data, c.left = m.Sequence, m.Data, c.left-int64(len(m.Data))
	}
	n := copy(p, c.data)
	c.data = c.data[n:]
	return n, nil
}

func (c *chunks) Close() error {
	c.left, c.data = 0, nil
	return nil
}

// failed is the error of a call to the server. The error of the caller's context stays
// itself.
func (b *bucket) failed(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return storage.Unavailable(b.place.fault(err))
}

// fault is an error of the server in words.
func (p *place) fault(err error) error {
	return egress.Server{
		Name: "blobs on NATS at " + p.servers, Unaffected: "blobs that are kept there stay, and none is half written",
		Address: "blobs (--blobs)", Secret: "blobs_credentials (--blobs-credentials)", CA: "blobs_ca (--blobs-ca)", Try: "writ doctor",
	}.Fault(bus.Plain(err))
}
