package bus

import (
	"context"
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
	sharesTime  = 30 * time.Second // for reading the sizes of its messages
	messageHead = 16               // bytes that a message takes besides its subject, its header and its data
	headerLine  = 4                // ": " and the end of the line, of each header
	headerFrame = 12               // "NATS/1.0" and the ends of lines, of a message with headers
)

// ShareFrames keeps the stream of display frames below its bound until ctx ends; otherwise
// JetStream would drop the oldest frames of any tenant. c must be the router's. Several routers
// may run it at once.
func ShareFrames(ctx context.Context, c Conn, log *slog.Logger) error {
	router, err := ours(c)
	if err != nil {
		return err
	}
	failed := false
	return clock.Loop(ctx, sharesEvery, func() {
		err := router.shareFrames(ctx, framesBytes-framesBytes/4)
		if err != nil && ctx.Err() == nil && !failed {
			log.WarnContext(ctx, "the stream of display frames has no shares: its oldest frames go first", slog.String("error", err.Error()))
		}
		failed = err != nil
	})
}

func (c *conn) shareFrames(ctx context.Context, limit uint64) error {
	if err := (sharedStream{c.frames, FramesStream, turnPrefix, 1}).below(ctx, limit); err != nil {
		return framesError(ctx, err)
	}
	return nil
}

// sharedStream is a stream in which tenants have shares.
type sharedStream struct {
	js           jetstream.JetStream
	name, prefix string
	tokens       int // of a subject after the prefix, which name its share
}

// below deletes messages while the stream has more bytes than limit: each time the share with the
// most bytes loses the older half of them.
func (s sharedStream) below(ctx context.Context, limit uint64) error {
	stream, err := s.js.Stream(ctx, s.name)
	if err != nil || stream.CachedInfo().State.Bytes <= limit {
		return err
	}
	shares, err := s.sizes(ctx)
	if err != nil {
		return err
	}
	total := uint64(0)
	for _, one := range shares {
		total += one.bytes
	}
	for total > limit {
		most := &share{}
		for _, one := range shares {
			if one.bytes > most.bytes {
				most = one
			}
		}
		total -= most.halve()
	}
	for subjects, one := range shares {
		if one.from == 0 {
			continue
		}
		if err := stream.Purge(ctx, jetstream.WithPurgeSubject(subjects), jetstream.WithPurgeSequence(one.from)); err != nil {
			return err
		}
	}
	return nil
}

// share is one part of the stream, the oldest message first.
type share struct {
	messages []messageSize
	bytes    uint64
	from     uint64 // the first sequence number to retain; 0: all
}

type messageSize struct{ seq, bytes uint64 }

// halve drops older messages, at least one, until half of the bytes are left.
func (s *share) halve() (freed uint64) {
	for half := s.bytes / 2; s.bytes > half; {
		first := s.messages[0]
		s.messages, s.bytes, s.from, freed = s.messages[1:], s.bytes-first.bytes, first.seq+1, freed+first.bytes
	}
	return freed
}

// sizes reads the sizes of all messages, without their data, by the subjects of their shares.
func (s sharedStream) sizes(ctx context.Context) (map[string]*share, error) {
	ctx, cancel := context.WithTimeout(ctx, sharesTime)
	defer cancel()
	cons, err := s.js.OrderedConsumer(ctx, s.name, jetstream.OrderedConsumerConfig{
		FilterSubjects: []string{s.prefix + ">"}, HeadersOnly: true, InactiveThreshold: readerAge,
	})
	if err != nil {
		return nil, err
	}
	defer dropReader(ctx, s.js, s.name, cons)
	it, err := cons.Messages()
	if err != nil {
		return nil, err
	}
	defer it.Stop()
	out := map[string]*share{}
	for {
		m, err := it.Next(jetstream.NextContext(ctx))
		if err != nil {
			return nil, err
		}
		meta, err := m.Metadata()
		if err != nil {
			return nil, err
		}
		subjects := s.share(m.Subject())
		one := out[subjects]
		if one == nil {
			one = &share{}
			out[subjects] = one
		}
		size := stored(m)
		one.messages, one.bytes = append(one.messages, messageSize{meta.Sequence.Stream, size}), one.bytes+size
		if meta.NumPending == 0 {
			return out, nil
		}
	}
}

// share returns the subjects of the share that a subject belongs to.
func (s sharedStream) share(subject string) string {
	tokens := strings.SplitN(strings.TrimPrefix(subject, s.prefix), ".", s.tokens+1)
	if len(tokens) > s.tokens {
		tokens[s.tokens] = ">"
	}
	return s.prefix + strings.Join(tokens, ".")
}

// stored returns the bytes that a message takes in a stream in memory.
func stored(m jetstream.Msg) uint64 {
	size, _ := strconv.ParseUint(m.Headers().Get(nats.MsgSize), 10, 64) // of its data
	header := 0
	for name, values := range m.Headers() {
		for _, value := range values {
			if name != nats.MsgSize {
				header += len(name) + len(value) + headerLine
			}
		}
	}
	if header > 0 {
		header += headerFrame
	}
	return size + uint64(len(m.Subject())) + uint64(header) + messageHead
}
