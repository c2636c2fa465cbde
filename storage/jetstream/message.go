package jetstream

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"aob.dev/writ/storage"
	"aob.dev/writ/storage/internal/codec"
	"aob.dev/writ/storage/internal/judge"
)

// version is the first byte of every group.
const version = 1

// block is the records of one message.
type block struct {
	codec.KeyRow
	entries []storage.Entry
}

func (g block) encode() []byte {
	keys, commits := g.Encode()
	b := binary.AppendUvarint([]byte{version}, uint64(g.First)) //nolint:gosec // G115: a position
	b = codec.AppendBytes(codec.AppendBytes(b, keys), commits)
	b = binary.AppendUvarint(b, uint64(len(g.entries)))
	for _, e := range g.entries {
		b = append(b, byte(slices.Index(codec.Kinds, e.Record.Kind))) //nolint:gosec // G115: one of five, as the judge has checked
		b = codec.AppendBytes(b, codec.Append(nil, e))
	}
	return b
}

var errGroup = errors.New("malformed group")

// decode is the inverse of encode. Parts of records count for more than what is beside them;
// wrong are the positions where that differs.
func decode(data []byte) (g block, wrong []int64, err error) {
	r := codec.Reader{Rest: data}
	if v := r.Byte(); v != version {
		return g, nil, fmt.Errorf("group of version %d, this program knows %d", v, version)
	}
	first := int64(r.Uvarint()) //nolint:gosec // G115: written by encode
	keys, commits := r.Bytes(), r.Bytes()
	n := r.Count()
	if r.Bad || first < 0 {
		return g, nil, errGroup
	}
	if g.KeyRow, err = codec.DecodeKeyRow(first, keys, commits); err != nil {
		return g, nil, err
	}
	taken := g.Keys
	for i := range n {
		kind, body := int(r.Byte()), r.Bytes()
		if r.Bad {
			return g, nil, errGroup
		}
		e, err := codec.Decode(first+int64(i), kind, body)
		if err != nil {
			return g, nil, err
		}
		if len(taken) > 0 && taken[0].Position == e.Record.Position {
			e.Key, taken = taken[0].Key, taken[1:]
		}
		p := judge.Prove(e)
		if p.Wrong || p.Keyed && p.Take && p.Key != e.Key {
			wrong = append(wrong, e.Record.Position)
		}
		if !p.Keyed {
			p.Key = e.Key
		}
		g.entries = append(g.entries, p.Entry)
	}
	if len(r.Rest) > 0 || len(taken) > 0 || n == 0 {
		return g, nil, errGroup
	}
	return g, wrong, nil
}
