package jetstream

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"aob.dev/writ/storage"
)

// message is a message of the stream: a group, or a term, which has no records.
type message struct {
	seq    uint64
	router string
	nonce  string
	data   []byte
	term   bool
}

func parse(subject string, h nats.Header, data []byte, seq uint64) message {
	return message{term: subject == subjectTerm, seq: seq, router: h.Get(headerRouter), nonce: h.Get(headerNonce), data: data}
}

// messages are those of the stream, and the keys of their erasable parts.
type messages struct {
	jetstream.Stream
	keys *keyFiles
}

// at reads the message of a sequence. there is false if it is missing.
func (s messages) at(ctx context.Context, seq uint64) (m message, there bool, err error) {
	raw, err := s.GetMsg(ctx, seq)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return m, false, nil
	}
	if err != nil {
		return m, false, failed(err)
	}
	return parse(raw.Subject, raw.Header, raw.Data, seq), true, nil
}

// group reads the group that has a position, which is at one of the places from low on and
// before high, as it is now.
func (s messages) group(ctx context.Context, position int64, low, high uint64) (m message, g block, err error) {
	for low < high {
		middle := low + (high-low)/2
		m, there, err := s.groupFrom(ctx, middle, high)
		if err != nil {
			return m, g, err
		}
		if !there {
			high = middle
			continue
		}
		if g, _, err = decode(m.data, s.keys.of(ctx)); err != nil {
			return m, g, fmt.Errorf("message %d: %w", m.seq, err)
		}
		switch {
		case position < g.First:
			high = middle
		case position < g.First+int64(len(g.entries)):
			return m, g, nil
		default:
			low = m.seq + 1
		}
	}
	return m, g, fmt.Errorf("no message has record %d", position)
}

// groupFrom reads the first group from a sequence on and before high.
func (s messages) groupFrom(ctx context.Context, seq, high uint64) (m message, there bool, err error) {
	for ; seq < high && err == nil && !there; seq++ {
		m, there, err = s.at(ctx, seq)
		there = there && !m.term
	}
	return m, there, err
}

// Look reads the records of an index without following the stream.
type Look struct {
	stream messages
	index  *StreamIndex
}

// NewLook at the stream, which must be there.
func NewLook(ctx context.Context, js jetstream.JetStream, f *StreamIndex) (*Look, error) {
	s, err := open(ctx, js)
	return &Look{s, f}, err
}

// Get reads one record, however long the servers need; storage.ErrNotFound if the index has none.
func (l *Look) Get(ctx context.Context, position int64) (storage.Record, error) {
	low, high, ok := l.index.around(position)
	if !ok {
		return storage.Record{}, storage.ErrNotFound
	}
	g, err := patiently(ctx, func(ctx context.Context) (block, error) {
		_, g, err := l.stream.group(ctx, position, low, high)
		return g, err
	})
	if err != nil {
		return storage.Record{}, fmt.Errorf("read record %d: %w", position, err)
	}
	return g.entries[position-g.First].Record, nil
}
