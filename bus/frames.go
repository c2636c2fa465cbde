package bus

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Limits of the stream of display frames, which tenants share (ShareFrames). Frames are for
// display only; the record of the plan is complete without them.
const (
	framesAge   = 10 * time.Minute
	framesBytes = 64 << 20
)

// readerAge is how long the server retains the reader of a client that vanished.
const readerAge = 30 * time.Second

// EnsureFrames creates the stream of display frames if it is missing, and waits for the servers
// as long as needed; c must be the router's. The stream is in memory, but a client may come back
// with a sequence number from before a restart. Numbers start at the microsecond of the stream's
// creation, so they keep growing; they stay below 2^53 until the year 2255.
func EnsureFrames(ctx context.Context, c Conn) error {
	router, err := ours(c)
	if err != nil {
		return err
	}
	_, err = RetryUntilReady(ctx, "stream "+FramesStream, func(ctx context.Context) (jetstream.Stream, error) {
		return router.frames.CreateStream(ctx, jetstream.StreamConfig{
			Name:        FramesStream,
			Description: "display frames of turns",
			Subjects:    []string{turnPrefix + ">"},
			Storage:     jetstream.MemoryStorage,
			MaxAge:      framesAge,
			MaxBytes:    framesBytes,
			Discard:     jetstream.DiscardOld,
			FirstSeq:    uint64(time.Now().UnixMicro()),
			Replicas:    Replicas(c),
		})
	})
	if err != nil && !errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
		return Fault("stream "+FramesStream, err)
	}
	return nil
}

// Frames implements Conn. Only the role frames may read any.
func (c *conn) Frames(ctx context.Context, subject string, after uint64, fn func(Frame) bool) error {
	cons, err := c.frames.OrderedConsumer(ctx, FramesStream, jetstream.OrderedConsumerConfig{
		FilterSubjects:    []string{subject},
		DeliverPolicy:     jetstream.DeliverByStartSequencePolicy,
		OptStartSeq:       after + 1,
		InactiveThreshold: readerAge,
	})
	if err != nil {
		return framesError(ctx, err)
	}
	defer dropReader(ctx, c.frames, FramesStream, cons)
	it, err := cons.Messages()
	if err != nil {
		return framesError(ctx, err)
	}
	defer it.Stop()
	for {
		m, err := it.Next(jetstream.NextContext(ctx))
		if err != nil {
			return framesError(ctx, err)
		}
		meta, err := m.Metadata()
		if err != nil {
			return framesError(ctx, err)
		}
		if !fn(Frame{Seq: meta.Sequence.Stream, Data: m.Data()}) {
			return nil
		}
	}
}

// dropReader deletes the server's side of a reader at once instead of after readerAge.
func dropReader(ctx context.Context, js jetstream.JetStream, stream string, cons jetstream.Consumer) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
	defer cancel()
	_ = js.DeleteConsumer(ctx, stream, cons.CachedInfo().Name) // otherwise readerAge does
}

func framesError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return Fault("stream "+FramesStream, err)
}
