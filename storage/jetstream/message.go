package jetstream

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"aob.dev/writ/storage"
	"aob.dev/writ/storage/internal/codec"
	"aob.dev/writ/storage/judge"
)

// version is the first byte of every group.
const version = 2

// block is the records of one message.
type block struct {
	First   int64 // position of the first of them
	Commits []judge.Committed
	entries []storage.Entry
	slots   []codec.Slots // of each entry
}

// encode encrypts erasable parts under keys that fresh returns.
func (g block) encode(fresh func() (slot uint64, key codec.Key, err error)) ([]byte, error) {
	b := binary.AppendUvarint([]byte{version}, uint64(g.First)) //nolint:gosec // G115: a position
	b = codec.AppendBytes(b, codec.AppendCommits(nil, g.First, g.Commits))
	b = binary.AppendUvarint(b, uint64(len(g.entries)))
	for _, e := range g.entries {
		b = append(b, byte(slices.Index(codec.Kinds, e.Record.Kind))) //nolint:gosec // G115: one of five, as the judge has checked
		body, err := codec.Append(nil, e, fresh)
		if err != nil {
			return nil, err
		}
		b = codec.AppendBytes(b, body)
	}
	return b, nil
}

var errGroup = errors.New("malformed group")

// decode is the inverse of encode. Parts of records override what is stored beside them;
// wrong says where the two differ, or where erasable parts cannot be decrypted although nobody
// has erased their key: these read as erased.
func decode(data []byte, key func(slot uint64) (codec.Key, error)) (g block, wrong []error, err error) {
	r := codec.Reader{Rest: data}
	if v := r.Byte(); v != version {
		return g, nil, fmt.Errorf("group of version %d, this program knows %d", v, version)
	}
	g.First = int64(r.Uvarint()) //nolint:gosec // G115: written by encode
	commits, n := r.Bytes(), r.Count()
	if r.Bad || g.First < 0 {
		return g, nil, errGroup
	}
	if g.Commits, err = codec.DecodeCommits(g.First, commits); err != nil {
		return g, nil, err
	}
	for i := range n {
		kind, body := int(r.Byte()), r.Bytes()
		if r.Bad {
			return g, nil, errGroup
		}
		at := g.First + int64(i)
		stored, err := codec.Decode(at, kind, body, key)
		if l := (*codec.LostError)(nil); errors.As(err, &l) {
			wrong, err = append(wrong, l), nil
		}
		if err != nil {
			return g, nil, err
		}
		slots, err := codec.SlotsOf(at, kind, body)
		if err != nil {
			return g, nil, err
		}
		e, differs, err := judge.Prove(stored)
		if err != nil {
			return g, nil, err
		}
		if differs {
			wrong = append(wrong, fmt.Errorf("what is kept beside record %d differs from its parts, which are trusted", at))
		}
		g.entries, g.slots = append(g.entries, e), append(g.slots, slots)
	}
	if len(r.Rest) > 0 || n == 0 {
		return g, nil, errGroup
	}
	return g, wrong, nil
}

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
