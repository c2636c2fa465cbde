package blobnats

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"aob.dev/writ/storage"
)

// Sweep removes old scopes, and chunks of a crash; see storage.Blobs. Chunks are of
// a crash if they have no name, nobody in this process is writing them, and the
// last one is older than age. It continues after an error and returns all of them.
func (b *Blobs) Sweep(ctx context.Context, age time.Duration) (removed int, failed error) {
	before := time.Now().Add(-age)
	removed, failed = b.NamedBlobs.Sweep(ctx, age)
	for _, in := range []*bucket{b.steps, b.kept} {
		n, err := in.sweepChunks(ctx, before)
		removed += n
		failed = errors.Join(failed, err)
	}
	return removed, failed
}

// sweepChunks removes chunks without a name. Names are listed after chunks: what
// gets its name meanwhile has it.
func (b *bucket) sweepChunks(ctx context.Context, before time.Time) (removed int, err error) {
	info, err := b.stream.Info(ctx, jetstream.WithSubjectFilter(b.chunk(">")))
	if err != nil {
		return 0, b.failed(ctx, err)
	}
	loose := make(map[string]bool)
	for subject := range info.State.Subjects {
		if nuid := strings.TrimPrefix(subject, b.chunk("")); !b.isActive(nuid) {
			loose[nuid] = true
		}
	}
	if len(loose) == 0 {
		return 0, nil
	}
	list, err := b.named(ctx)
	if err != nil {
		return 0, err
	}
	for _, o := range list {
		delete(loose, o.NUID)
	}
	for nuid := range loose {
		last, err := b.stream.GetLastMsgForSubject(ctx, b.chunk(nuid))
		if errors.Is(err, jetstream.ErrMsgNotFound) || err == nil && last.Time.After(before) {
			continue
		}
		if err == nil {
			err = b.stream.Purge(ctx, jetstream.WithPurgeSubject(b.chunk(nuid)))
		}
		if err != nil {
			return removed, b.failed(ctx, err)
		}
		removed++
	}
	return removed, nil
}

// named are all objects. A consumer of its own fetches the present ones: ObjectStore.List watches
// for the last message that was there when it began, and waits for ever where that is removed
// meanwhile.
func (b *bucket) named(ctx context.Context) (all []*jetstream.ObjectInfo, err error) {
	c, err := b.stream.CreateConsumer(ctx, jetstream.ConsumerConfig{
		FilterSubject: b.meta(">"), DeliverPolicy: jetstream.DeliverLastPerSubjectPolicy, AckPolicy: jetstream.AckNonePolicy,
		InactiveThreshold: time.Minute, MemoryStorage: true,
	})
	if err != nil {
		return nil, b.failed(ctx, err)
	}
	defer func() { _ = b.stream.DeleteConsumer(context.WithoutCancel(ctx), c.CachedInfo().Name) }() // else the server does, after a minute
	for read := uint64(0); ; {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		batch, err := c.FetchNoWait(fetched)
		if err != nil {
			return nil, b.failed(ctx, err)
		}
		n := uint64(0)
		for m := range batch.Messages() {
			n++
			o, err := object(m)
			if err != nil {
				return nil, b.failed(ctx, err)
			}
			if !o.Deleted {
				all = append(all, o)
			}
		}
		if err := batch.Error(); err != nil {
			return nil, b.failed(ctx, err)
		}
		if read += n; n > 0 {
			continue
		}
		switch is, err := c.Info(ctx); { // an answer that was late counts as none
		case err != nil:
			return nil, b.failed(ctx, err)
		case is.Delivered.Consumer > read:
			return nil, b.failed(ctx, errors.New("names were sent that did not arrive"))
		case is.NumPending == 0:
			return all, nil
		}
	}
}

// fetched is how many names are requested at once.
const fetched = 1000

// object is the description of one in a message.
func object(m jetstream.Msg) (*jetstream.ObjectInfo, error) {
	o := new(jetstream.ObjectInfo)
	if err := json.Unmarshal(m.Data(), o); err != nil {
		return nil, err
	}
	at, err := m.Metadata()
	if err == nil {
		o.ModTime = at.Timestamp
	}
	return o, err
}

// List the objects whose names begin with a prefix; see storage.Objects.
func (b *bucket) List(ctx context.Context, prefix string) (out []storage.ObjectInfo, err error) {
	all, err := b.named(ctx)
	for _, o := range all {
		if strings.HasPrefix(o.Name, prefix) {
			out = append(out, storage.ObjectInfo{Name: o.Name, Size: int64(min(o.Size, math.MaxInt64)), At: o.ModTime})
		}
	}
	return out, err
}

// Remove an object; see storage.Objects. What is put again gives its name to new
// chunks, at a later position, and neither is removed.
func (b *bucket) Remove(ctx context.Context, name string, before time.Time) (bool, error) {
	info, m, err := b.info(ctx, name)
	if errors.Is(err, storage.ErrNotFound) || err == nil && !before.IsZero() && m.Time.After(before) {
		return false, nil
	}
	if err == nil {
		err = b.remove(ctx, name, m.Sequence, info.NUID)
	}
	if err != nil {
		return false, err
	}
	_, _, err = b.info(ctx, name) // what was put again meanwhile has the name now
	if errors.Is(err, storage.ErrNotFound) {
		return true, nil
	}
	return false, err
}

// remove takes the name away, up to a position, and then the chunks that had it
// there. A crash between leaves chunks without a name.
func (b *bucket) remove(ctx context.Context, name string, position uint64, nuid string) error {
	err := b.stream.Purge(ctx, jetstream.WithPurgeSubject(b.meta(name)), jetstream.WithPurgeSequence(position+1))
	if err == nil {
		err = b.stream.Purge(ctx, jetstream.WithPurgeSubject(b.chunk(nuid)))
	}
	if err != nil {
		return b.failed(ctx, err)
	}
	return nil
}
