package jetstream

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"aob.dev/writ/storage"
)

// message is a group as stored in the stream.
type message struct {
	place  uint64 // sequence that the group was written at, at first
	seq    uint64 // its own
	erased bool   // it is what an erasure has written
	router string
	nonce  string
	data   []byte
}

// end is the sequence up to which everything was read with this message.
func (m message) end() uint64 {
	if m.erased {
		return m.seq
	}
	return m.place
}

func parse(subject string, h nats.Header, data []byte, seq uint64) (m message, err error) {
	m = message{seq: seq, place: seq, router: h.Get(headerRouter), nonce: h.Get(headerNonce), data: data}
	if place, erased := strings.CutPrefix(subject, subjectErased); erased {
		m.erased = true
		m.place, err = strconv.ParseUint(place, 10, 64)
	}
	return m, err
}

func erasedSubject(place uint64) string { return subjectErased + strconv.FormatUint(place, 10) }

// messages are those of the stream.
type messages struct{ jetstream.Stream }

// at reads the message of a sequence, or the group that replaces it. there is false if
// it is missing, or of an earlier erasure.
func (s messages) at(ctx context.Context, seq uint64) (m message, there bool, err error) {
	raw, err := s.GetMsg(ctx, seq)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return s.inPlaceOf(ctx, seq)
	}
	if err != nil {
		return m, false, failed(err)
	}
	m, err = parse(raw.Subject, raw.Header, raw.Data, seq)
	return m, true, err
}

// inPlaceOf is the group that replaces a missing message: parts of it were
// erased. there is false for the message of an earlier erasure.
func (s messages) inPlaceOf(ctx context.Context, place uint64) (m message, there bool, err error) {
	raw, err := s.GetLastMsgForSubject(ctx, erasedSubject(place))
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return m, false, nil
	}
	if err != nil {
		return m, false, failed(err)
	}
	m, err = parse(subjectGroup, raw.Header, raw.Data, place)
	m.nonce = ""
	return m, true, err
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
		if g, _, err = decode(m.data); err != nil {
			return m, g, fmt.Errorf("message %d: %w", m.place, err)
		}
		switch {
		case position < g.First:
			high = middle
		case position < g.First+int64(len(g.entries)):
			return m, g, nil
		default:
			low = m.place + 1
		}
	}
	return m, g, fmt.Errorf("no message has record %d", position)
}

// groupFrom reads the first group from a place on and before high.
func (s messages) groupFrom(ctx context.Context, place, high uint64) (m message, there bool, err error) {
	for ; place < high; place++ {
		if m, there, err = s.at(ctx, place); err != nil || there && !m.erased {
			return m, there, err
		}
	}
	return m, false, nil
}

// Look reads the records of an index without following the stream.
type Look struct {
	stream messages
	index  *StreamIndex
}

// NewLook at the stream, which must be there.
func NewLook(ctx context.Context, js jetstream.JetStream, f *StreamIndex) (*Look, error) {
	s, err := open(ctx, js)
	return &Look{messages{s}, f}, err
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
