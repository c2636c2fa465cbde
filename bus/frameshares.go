package bus

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"aob.dev/writ/internal/clock"
)

const (
	sharesEvery = time.Second      // interval of the check of the stream's size
	sharesTime  = 30 * time.Second // for reading the sizes of its frames
	frameHead   = 16               // bytes that a message takes besides its subject and its data
)

// ShareFrames keeps the stream of display frames below its bound until ctx ends; otherwise
// JetStream would drop the oldest frames of any tenant. c must be the router's. Several routers
// may run it at once.
func ShareFrames(ctx context.Context, c Conn, log *slog.Logger) error {
	router, ok := c.(*conn)
	if !ok {
		return errors.New("bus: frames: not a connection of this package")
	}
	for failed := false; ctx.Err() == nil; _ = clock.Sleep(ctx, sharesEvery) {
		err := router.shareFrames(ctx, framesBytes-framesBytes/4)
		if err != nil && ctx.Err() == nil && !failed {
			log.WarnContext(ctx, "the stream of display frames has no shares: its oldest frames go first", slog.String("error", err.Error()))
		}
		failed = err != nil
	}
	return nil
}

// shareFrames deletes frames while the stream has more bytes than limit: each time the tenant
// with the most bytes loses the older half of them.
func (c *conn) shareFrames(ctx context.Context, limit uint64) error {
	s, err := c.frames.Stream(ctx, FramesStream)
	if err != nil {
		return framesError(ctx, err)
	}
	if s.CachedInfo().State.Bytes <= limit {
		return nil
	}
	shares, err := c.frameSizes(ctx)
	if err != nil {
		return framesError(ctx, err)
	}
	total := uint64(0)
	for _, share := range shares {
		total += share.bytes
	}
	for total > limit {
		most := &frameShare{}
		for _, share := range shares {
			if share.bytes > most.bytes {
				most = share
			}
		}
		total -= most.halve()
	}
	for tenant, share := range shares {
		if share.from == 0 {
			continue
		}
		if err := s.Purge(ctx, jetstream.WithPurgeSubject(turnPrefix+tenant+".>"), jetstream.WithPurgeSequence(share.from)); err != nil {
			return framesError(ctx, err)
		}
	}
	return nil
}

// frameShare is one tenant's part of the stream, the oldest first.
type frameShare struct {
	frames []frameSize
	bytes  uint64
	from   uint64 // the first sequence number to retain; 0: all
}

type frameSize struct{ seq, bytes uint64 }

// halve drops older frames, at least one, until half of the bytes are left.
func (s *frameShare) halve() (freed uint64) {
	for half := s.bytes / 2; s.bytes > half; {
		first := s.frames[0]
		s.frames, s.bytes, s.from, freed = s.frames[1:], s.bytes-first.bytes, first.seq+1, freed+first.bytes
	}
	return freed
}

// frameSizes reads the sizes of all frames, without their data, by the tenant's token.
func (c *conn) frameSizes(ctx context.Context) (map[string]*frameShare, error) {
	ctx, cancel := context.WithTimeout(ctx, sharesTime)
	defer cancel()
	cons, err := c.frames.OrderedConsumer(ctx, FramesStream, jetstream.OrderedConsumerConfig{
		FilterSubjects: []string{turnPrefix + ">"}, HeadersOnly: true, InactiveThreshold: readerAge,
	})
	if err != nil {
		return nil, err
	}
	defer c.dropReader(ctx, cons)
	it, err := cons.Messages()
	if err != nil {
		return nil, err
	}
	defer it.Stop()
	out := map[string]*frameShare{}
	for {
		m, err := it.Next(jetstream.NextContext(ctx))
		if err != nil {
			return nil, err
		}
		meta, err := m.Metadata()
		if err != nil {
			return nil, err
		}
		size, _ := strconv.ParseUint(m.Headers().Get(nats.MsgSize), 10, 64)
		tenant, _, _ := strings.Cut(strings.TrimPrefix(m.Subject(), turnPrefix), ".")
		share := out[tenant]
		if share == nil {
			share = &frameShare{}
			out[tenant] = share
		}
		size += uint64(len(m.Subject())) + frameHead
		share.frames, share.bytes = append(share.frames, frameSize{meta.Sequence.Stream, size}), share.bytes+size
		if meta.NumPending == 0 {
			return out, nil
		}
	}
}
