package jetstream

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"aob.dev/writ/internal/clock"
	"aob.dev/writ/storage"
)

// follow the stream until ctx ends, through all that happens to servers and connections.
func (j *Journal) follow(ctx context.Context) {
	j.walk(ctx, j.index.Seq+1, func(m message) bool {
		if err := j.apply(ctx, m); err != nil {
			j.Fail(fmt.Errorf("message %d of stream %s: %w", m.seq, Stream, err))
			j.Mu.Lock()
			defer j.Mu.Unlock()
			j.wake() // who waits finds the failure
			return false
		}
		return true
	})
}

// walk yields the messages from a sequence on and waits for new ones, until ctx ends or fn
// returns false.
func (j *Journal) walk(ctx context.Context, next uint64, fn func(message) bool) {
	for told := uint64(0); ctx.Err() == nil; {
		err := j.consume(ctx, &next, fn)
		if err == nil || ctx.Err() != nil {
			return
		}
		if told != next { // once for each message that does not come
			j.options.Log.WarnContext(ctx, "the journal cannot be followed just now; writ goes on trying", slog.String("error", failed(err).Error()))
			told = next
		}
		_ = clock.Sleep(ctx, retryPause)
	}
}

// heartbeat is how often the servers report that there is nothing new. After two missed heartbeats they
// are asked again.
const heartbeat = time.Second

// consume is walk with one consumer; nil: fn returned false.
func (j *Journal) consume(ctx context.Context, next *uint64, fn func(message) bool) error {
	late, cancel := context.WithTimeout(ctx, 2*heartbeat)
	defer cancel()
	c, err := j.js.OrderedConsumer(late, Stream, jetstream.OrderedConsumerConfig{
		DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: *next, MaxResetAttempts: 1,
	})
	if err != nil {
		return err
	}
	it, err := c.Messages(jetstream.PullExpiry(4*heartbeat), jetstream.PullHeartbeat(heartbeat))
	if err != nil {
		return err
	}
	unstop := context.AfterFunc(ctx, it.Stop) // its resets know no ctx
	defer func() {
		unstop()
		it.Stop()
	}()
	for {
		raw, err := it.Next(jetstream.NextContext(ctx))
		if err != nil {
			return err
		}
		meta, err := raw.Metadata()
		if err != nil {
			return err
		}
		*next = meta.Sequence.Stream + 1 // that none is missing before is seen by its first position
		if !fn(parse(raw.Subject(), raw.Headers(), raw.Data(), meta.Sequence.Stream)) {
			return nil
		}
	}
}

// catchUp applies the message right after all that were read, without waiting until it is
// delivered.
func (j *Journal) catchUp(ctx context.Context, seq uint64) error {
	m, there, err := j.stream.at(ctx, seq)
	if err != nil {
		return err
	}
	if !there {
		return j.reach(ctx, seq)
	}
	return j.apply(ctx, m)
}

// apply applies what has not been applied yet.
func (j *Journal) apply(ctx context.Context, m message) error {
	if m.seq <= j.lastSeq() {
		return nil // this process has written it
	}
	if m.term {
		return j.applyTerm(m)
	}
	erased := j.stream.keys.erased.Load()
	g, wrong, err := decode(m.data, j.stream.keys.of(ctx)) // without the lock: it may wait for keys
	if err != nil {
		return err
	}
	j.Mu.Lock()
	defer j.Mu.Unlock()
	if m.seq <= j.index.Seq {
		return nil
	}
	if m.nonce != "" && m.nonce == j.nonce {
		j.stored = true
	}
	if err := j.succeeded(m); err != nil {
		return err
	}
	if err := j.index.fits(g); err != nil {
		return err
	}
	for _, err := range wrong {
		j.options.Log.ErrorContext(ctx, "the journal was changed by somebody else", slog.String("error", err.Error()))
	}
	j.applyGroup(m, g, erased)
	return nil
}

// applyGroup shows a group to the observer and applies it, as one step for all readers. erased is
// the number of erasures when the group was read: one since may be of it. The lock is held.
func (j *Journal) applyGroup(m message, g block, erased uint64) {
	j.index.apply(m, g, j.options.Observer)
	if erased == j.stream.keys.erased.Load() {
		j.cache.add(g)
	} else {
		j.cache = cache{}
	}
	j.wake()
}

// Follow brings an index up to what the journal has now, or to the last group that ends at or before
// a position, and shows it the records. After an error the index is unusable.
func (j *Journal) Follow(ctx context.Context, f *StreamIndex, end int64, seen storage.Observer) (err error) {
	until := j.lastSeq()
	if f.Seq >= until {
		return nil
	}
	reading, stop := context.WithCancel(ctx)
	defer stop()
	j.walk(reading, f.Seq+1, func(m message) bool {
		if m.term {
			f.Seq = m.seq
			return f.Seq < until
		}
		var g block
		if g, _, err = decode(m.data, j.stream.keys.of(reading)); err == nil {
			err = f.fits(g)
		}
		if err != nil || f.Next()+int64(len(g.entries)) > end {
			return false
		}
		f.apply(m, g, seen)
		return f.Seq < until
	})
	return errors.Join(err, ctx.Err())
}

func (j *Journal) lastSeq() uint64 {
	j.Mu.RLock()
	defer j.Mu.RUnlock()
	return j.index.Seq
}

// wake wakes those who wait for a message. The lock is held.
func (j *Journal) wake() {
	close(j.moved)
	j.moved = make(chan struct{})
}
