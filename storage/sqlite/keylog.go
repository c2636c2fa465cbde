package sqlite

import (
	"encoding/binary"
	"fmt"

	"aob.dev/writ/storage"
)

// taken is a key that the record at a position took.
type taken struct {
	key      storage.Key
	position int64
}

// committed says where the records of a commit are.
type committed struct {
	id    string
	first int64
	n     int
}

func (c committed) result() storage.Result {
	positions := make([]int64, c.n)
	for i := range positions {
		positions[i] = c.first + int64(i)
	}
	return storage.Result{Verdict: storage.Won, Positions: positions, Winner: storage.Nobody}
}

func appendTaken(b []byte, first int64, t taken) []byte {
	b = binary.AppendUvarint(b, uint64(t.position-first)) //nolint:gosec // G115: never before the first of its group
	return append(b, t.key[:]...)
}

func appendCommitted(b []byte, first int64, c committed) []byte {
	b = binary.AppendUvarint(b, uint64(c.first-first)) //nolint:gosec // G115: never before the first of its group
	b = binary.AppendUvarint(b, uint64(c.n))           //nolint:gosec // G115: a length
	return appendBytes(b, []byte(c.id))
}

// keyRow is one row of the keylog.
type keyRow struct {
	first   int64
	keys    []taken
	commits []committed
}

func decodeKeyRow(first int64, keys, commits []byte) (keyRow, error) {
	row := keyRow{first: first}
	r := reader{rest: keys}
	for len(r.rest) > 0 {
		t := taken{position: first + int64(r.uvarint())} //nolint:gosec // G115: written by appendTaken
		copy(t.key[:], r.take(len(t.key)))
		row.keys = append(row.keys, t)
	}
	c := reader{rest: commits}
	for len(c.rest) > 0 {
		offset, n := c.uvarint(), c.uvarint()
		if n > entriesLimit {
			c.fail()
		}
		row.commits = append(row.commits, committed{
			first: first + int64(offset), //nolint:gosec // G115: written by appendCommitted
			n:     int(n),                //nolint:gosec // G115: bounded
			id:    string(c.bytes()),
		})
	}
	if r.bad || c.bad {
		return keyRow{}, fmt.Errorf("malformed keylog row at position %d", first)
	}
	return row, nil
}

// rememberCommits is how many commit IDs are known at any time. A retry comes
// within seconds; 65,536 commits are more than one second at full speed.
const rememberCommits = 1 << 16

// recent remembers the last commits by ID.
type recent struct {
	byID map[string]committed
	ring []string // the IDs in order of arrival, from at on
	at   int
}

func newRecent() *recent { return &recent{byID: make(map[string]committed)} }

func (r *recent) add(c committed) {
	if len(r.ring) < rememberCommits {
		r.ring = append(r.ring, c.id)
	} else {
		delete(r.byID, r.ring[r.at])
		r.ring[r.at] = c.id
		r.at = (r.at + 1) % rememberCommits
	}
	r.byID[c.id] = c
}
