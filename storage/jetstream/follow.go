package jetstream

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"aob.dev/writ/internal/clock"
	"aob.dev/writ/storage"
)

// message is a group as it stands in the stream.
type message struct {
	seq    uint64 // where its bytes are
	place  uint64 // where it was written at first; seq, unless parts of it were erased
	erased bool   // it comes in place of one that may have been seen
	router string
	nonce  string
	data   []byte
}

// span is where a group is.
type span struct {
	first      int64 // position
	place, seq uint64
}

// follow the stream until ctx ends, through all that happens to servers and connections.
func (j *Journal) follow(ctx context.Context) {
	j.walk(ctx, 1, func(m message) bool {
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
// returns false. A group that was erased from comes at its place.
func (j *Journal) walk(ctx context.Context, next uint64, fn func(message) bool) {
	for ctx.Err() == nil {
		err := j.consume(ctx, &next, fn)
		if err == nil || ctx.Err() != nil {
			return
		}
		j.options.Log.WarnContext(ctx, "the journal cannot be followed just now; writ goes on trying", slog.String("error", err.Error()))
		_ = clock.Sleep(ctx, againAfter)
	}
}

// heartbeat is how often the servers say that there is nothing new. After two in silence they
// are asked anew.
const heartbeat = time.Second

// consume is walk with one consumer; nil: fn has said false.
func (j *Journal) consume(ctx context.Context, next *uint64, fn func(message) bool) error {
	late, cancel := context.WithTimeout(ctx, askTime)
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
		for seq := meta.Sequence.Stream; *next < seq; *next++ {
			m, there, err := j.inPlaceOf(ctx, *next)
			if err != nil {
				return err
			}
			if there && !fn(m) {
				return nil
			}
		}
		m, err := parse(raw.Subject(), raw.Headers(), raw.Data(), *next)
		if err != nil {
			return err
		}
		if *next++; !fn(m) {
			return nil
		}
	}
}

func parse(subject string, h nats.Header, data []byte, seq uint64) (m message, err error) {
	m = message{seq: seq, place: seq, router: h.Get(headerRouter), nonce: h.Get(headerNonce), data: data}
	if place, erased := strings.CutPrefix(subject, subjectErased); erased {
		m.erased = true
		m.place, err = strconv.ParseUint(place, 10, 64)
	}
	return m, err
}

// inPlaceOf is the group that stands for a message that is not there: parts of it were
// erased. there is false for the message of an earlier erasure.
func (j *Journal) inPlaceOf(ctx context.Context, place uint64) (m message, there bool, err error) {
	raw, err := j.stream.GetLastMsgForSubject(ctx, erasedSubject(place))
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return m, false, nil
	}
	if err != nil {
		return m, false, err
	}
	m, err = parse(subjectGroup, raw.Header, raw.Data, place)
	m.seq, m.nonce = raw.Sequence, ""
	return m, true, err
}

func erasedSubject(place uint64) string { return subjectErased + strconv.FormatUint(place, 10) }

// catchUp folds in the message right behind all that was seen, rather than wait until it is
// delivered.
func (j *Journal) catchUp(ctx context.Context, seq uint64) error {
	raw, err := j.stream.GetMsg(ctx, seq)
	var m message
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
		var there bool
		if m, there, err = j.inPlaceOf(ctx, seq); err == nil && !there {
			return j.reach(ctx, seq) // nothing is there, or what an erasure has left
		}
	case err == nil:
		m, err = parse(raw.Subject, raw.Header, raw.Data, seq)
	}
	if err != nil {
		return err
	}
	return j.apply(ctx, m)
}

// apply folds in what has not been seen.
func (j *Journal) apply(ctx context.Context, m message) error {
	j.Mu.Lock()
	defer j.Mu.Unlock()
	at := m.place
	if m.erased {
		at = m.seq
	}
	if at <= j.seq {
		return nil // this process has written it
	}
	if m.nonce != "" && m.nonce == j.nonce {
		j.stored = true
	}
	if m.erased {
		j.applyErased(m)
		return nil
	}
	g, wrong, err := decode(m.data)
	if err != nil {
		return err
	}
	if g.First != j.State.Next() {
		return fmt.Errorf("the group begins with record %d, and record %d is next", g.First, j.State.Next())
	}
	for _, position := range wrong {
		j.options.Log.ErrorContext(ctx, "the journal was changed by somebody else; the record's parts are trusted", slog.Int64("position", position))
	}
	j.applyGroup(m, g)
	return nil
}

// applyGroup shows a group to the observer and folds it in, as one step for all readers. The
// lock is held.
func (j *Journal) applyGroup(m message, g block) {
	for _, e := range g.entries {
		j.options.Observer(e)
		j.State.Apply(e)
		j.own(m.router, e)
	}
	for _, c := range g.Commits {
		j.State.Remember(c)
	}
	j.spans = append(j.spans, span{g.First, m.place, m.seq})
	j.cache.add(g)
	j.seq = m.place
	j.wake()
}

// own says whose an open order is.
func (j *Journal) own(router string, e storage.Entry) {
	switch {
	case e.Record.Kind == storage.KindOrder && e.Open:
		j.owners[e.Record.Position] = router
	case e.Record.Kind == storage.KindRelease, e.Record.Kind == storage.KindTakeover:
		j.owners[e.Of] = router
	case e.Record.Kind == storage.KindOutcome:
		delete(j.owners, e.Of)
	}
}

// applyErased notes where a group is now. The lock is held.
func (j *Journal) applyErased(m message) {
	j.seq = m.seq
	defer j.wake()
	i, found := slices.BinarySearchFunc(j.spans, m.place, func(s span, place uint64) int {
		return int(int64(s.place) - int64(place)) //nolint:gosec // G115: of one stream
	})
	if !found {
		return
	}
	old := m.seq // a later one was found at its place
	if s := &j.spans[i]; s.seq < m.seq {
		old, s.seq = s.seq, m.seq
	}
	if old != j.spans[i].seq {
		j.left[m.place] = append(j.left[m.place], old)
	}
	j.cache.drop(j.spans[i].first)
}

// wake who waits for seq. The lock is held.
func (j *Journal) wake() {
	close(j.moved)
	j.moved = make(chan struct{})
}
