package blobnats

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"aob.dev/writ/storage"
)

// Chunks of an object: their bytes, and how many are sent before the server has
// acknowledged the first of them.
const (
	chunkSize = 128 << 10
	window    = 8
)

// answerTime is how long the server has to acknowledge a message.
const answerTime = 30 * time.Second

// Put streams r into chunks and names them; see storage.Objects. Chunks
// that could not be removed after an error are left to Sweep.
func (b *bucket) Put(ctx context.Context, r io.Reader, name func(storage.Digest) string) (d storage.Digest, size int64, err error) {
	nuid := b.begin()
	defer b.end(nuid)
	info := jetstream.ObjectInfo{Bucket: b.name, NUID: nuid}
	info.Opts = &jetstream.ObjectMetaOptions{ChunkSize: chunkSize}
	if d, size, err = b.send(ctx, r, nuid, &info); err != nil {
		return d, size, err
	}
	info.Name = name(d)
	info.Digest = "SHA-256=" + base64.URLEncoding.EncodeToString(d[:])
	m := nats.NewMsg(b.meta(info.Name))
	m.Header.Set(jetstream.MsgRollup, jetstream.MsgRollupSubject)
	if m.Data, err = json.Marshal(info); err != nil {
		return d, size, err
	}
	// Where no answer comes the name may be there: its chunks must stay.
	if _, err := b.js.PublishMsg(ctx, m); err != nil {
		return d, size, b.failed(ctx, err)
	}
	return d, size, nil
}

// send publishes the chunks and returns when the server has all of them, or has
// none of them any more.
func (b *bucket) send(ctx context.Context, r io.Reader, nuid string, info *jetstream.ObjectInfo) (d storage.Digest, size int64, err error) {
	var pending []jetstream.PubAckFuture
	defer func() {
		if err != nil {
			b.undo(ctx, nuid, pending)
		}
	}()
	taken := func(n int) error { // all but n
		for ; len(pending) > n; pending = pending[1:] {
			select {
			case <-pending[0].Ok():
			case err := <-pending[0].Err():
				return b.failed(ctx, err)
			case <-ctx.Done():
				return ctx.Err()
			case <-b.closed:
				return b.failed(ctx, nats.ErrConnectionClosed)
			}
		}
		return nil
	}
	h := sha256.New()
	ring := make([]byte, (window+1)*chunkSize) // a chunk must not change while it may be sent again
	for i := 0; ; i++ {
		if err := ctx.Err(); err != nil {
			return d, size, err
		}
		chunk := ring[i%(window+1)*chunkSize:][:chunkSize]
		n, end := io.ReadFull(r, chunk)
		if end != nil && !errors.Is(end, io.EOF) && !errors.Is(end, io.ErrUnexpectedEOF) {
			return d, size, end
		}
		if n > 0 {
			h.Write(chunk[:n])
			size += int64(n)
			info.Chunks++
			ack, err := b.js.PublishMsgAsync(&nats.Msg{Subject: b.chunk(nuid), Data: chunk[:n]})
			if err != nil {
				return d, size, b.failed(ctx, err)
			}
			pending = append(pending, ack)
		}
		last := end != nil
		left := window - 1
		if last {
			left = 0
		}
		if err := taken(left); err != nil {
			return d, size, err
		}
		if last {
			break
		}
	}
	info.Size = uint64(size) //nolint:gosec // G115: counted
	copy(d[:], h.Sum(nil))
	return d, size, nil
}

// undo removes the chunks of an object that gets no name, although ctx may have
// ended: first those on their way arrive. What cannot be removed now is left to
// Sweep.
func (b *bucket) undo(ctx context.Context, nuid string, pending []jetstream.PubAckFuture) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerTime)
	defer cancel()
	for _, ack := range pending {
		select {
		case <-ack.Ok():
		case <-ack.Err(): //nolint:errcheck // it got its answer
		case <-ctx.Done():
		case <-b.closed:
			return
		}
	}
	_ = b.stream.Purge(ctx, jetstream.WithPurgeSubject(b.chunk(nuid)))
}
