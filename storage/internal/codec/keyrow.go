package codec

import (
	"encoding/binary"
	"fmt"

	"aob.dev/writ/storage/internal/judge"
)

// appendTaken encodes a key as uvarint offset and 16 bytes.
func appendTaken(b []byte, first int64, t judge.Taken) []byte {
	b = binary.AppendUvarint(b, uint64(t.Position-first)) //nolint:gosec // G115: never before the first of its group
	return append(b, t.Key[:]...)
}

// appendCommitted encodes a commit as uvarint offset, uvarint number of records, and its
// ID with its length.
func appendCommitted(b []byte, first int64, c judge.Committed) []byte {
	b = binary.AppendUvarint(b, uint64(c.First-first)) //nolint:gosec // G115: never before the first of its group
	b = binary.AppendUvarint(b, uint64(c.N))           //nolint:gosec // G115: a length
	return AppendBytes(b, []byte(c.ID))
}

// KeyRow is the keys that a group of records took and the commits that are in it.
type KeyRow struct {
	First   int64 // position of the group's first record
	Keys    []judge.Taken
	Commits []judge.Committed
}

// Encode a row as its keys and its commits.
func (row KeyRow) Encode() (keys, commits []byte) {
	keys, commits = []byte{}, []byte{}
	for _, t := range row.Keys {
		keys = appendTaken(keys, row.First, t)
	}
	for _, c := range row.Commits {
		commits = appendCommitted(commits, row.First, c)
	}
	return keys, commits
}

// DecodeKeyRow is the inverse of Encode.
func DecodeKeyRow(first int64, keys, commits []byte) (KeyRow, error) {
	row := KeyRow{First: first}
	r := Reader{Rest: keys}
	for len(r.Rest) > 0 {
		t := judge.Taken{Position: first + int64(r.Uvarint())} //nolint:gosec // G115: written by appendTaken
		copy(t.Key[:], r.Take(len(t.Key)))
		row.Keys = append(row.Keys, t)
	}
	c := Reader{Rest: commits}
	for len(c.Rest) > 0 {
		offset, n := c.Uvarint(), c.Uvarint()
		if n > judge.EntriesLimit {
			c.Fail()
		}
		row.Commits = append(row.Commits, judge.Committed{
			First: first + int64(offset), //nolint:gosec // G115: written by appendCommitted
			N:     int(n),                //nolint:gosec // G115: bounded
			ID:    string(c.Bytes()),
		})
	}
	if r.Bad || c.Bad {
		return KeyRow{}, fmt.Errorf("malformed keylog row at position %d", first)
	}
	return row, nil
}
