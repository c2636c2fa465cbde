package jetstream

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

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
