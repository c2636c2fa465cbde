package sqlite

import (
	"encoding/binary"
	"fmt"

	"aob.dev/writ/storage/internal/judge"
)

func appendTaken(b []byte, first int64, t judge.Taken) []byte {
	b = binary.AppendUvarint(b, uint64(t.Position-first)) //nolint:gosec // G115: never before the first of its group
	return append(b, t.Key[:]...)
}

func appendCommitted(b []byte, first int64, c judge.Committed) []byte {
	b = binary.AppendUvarint(b, uint64(c.First-first)) //nolint:gosec // G115: never before the first of its group
	b = binary.AppendUvarint(b, uint64(c.N))           //nolint:gosec // G115: a length
	return appendBytes(b, []byte(c.ID))
}

// keyRow is one row of the keylog.
type keyRow struct {
	first   int64
	keys    []judge.Taken
	commits []judge.Committed
}

func decodeKeyRow(first int64, keys, commits []byte) (keyRow, error) {
	row := keyRow{first: first}
	r := reader{rest: keys}
	for len(r.rest) > 0 {
		t := judge.Taken{Position: first + int64(r.uvarint())} //nolint:gosec // G115: written by appendTaken
		copy(t.Key[:], r.take(len(t.Key)))
		row.keys = append(row.keys, t)
	}
	c := reader{rest: commits}
	for len(c.rest) > 0 {
		offset, n := c.uvarint(), c.uvarint()
		if n > judge.EntriesLimit {
			c.fail()
		}
		row.commits = append(row.commits, judge.Committed{
			First: first + int64(offset), //nolint:gosec // G115: written by appendCommitted
			N:     int(n),                //nolint:gosec // G115: bounded
			ID:    string(c.bytes()),
		})
	}
	if r.bad || c.bad {
		return keyRow{}, fmt.Errorf("malformed keylog row at position %d", first)
	}
	return row, nil
}
