package codec

import (
	"encoding/binary"
	"fmt"

	"aob.dev/writ/storage/judge"
)

// AppendCommits encodes the commits of a group of records, of which the first has a position:
// each as uvarint offset, uvarint number of records, and its ID with its length.
func AppendCommits(b []byte, first int64, commits []judge.Committed) []byte {
	for _, c := range commits {
		b = binary.AppendUvarint(b, uint64(c.First-first)) //nolint:gosec // G115: never before the first of its group
		b = binary.AppendUvarint(b, uint64(c.N))           //nolint:gosec // G115: a length
		b = AppendBytes(b, []byte(c.ID))
	}
	return b
}

// DecodeCommits is the inverse of AppendCommits.
func DecodeCommits(first int64, raw []byte) (commits []judge.Committed, err error) {
	r := Reader{Rest: raw}
	for len(r.Rest) > 0 {
		offset, n := r.Uvarint(), r.Uvarint()
		if n > judge.EntriesLimit {
			r.Fail()
		}
		commits = append(commits, judge.Committed{
			First: first + int64(offset), //nolint:gosec // G115: written by AppendCommits
			N:     int(n),                //nolint:gosec // G115: bounded
			ID:    string(r.Bytes()),
		})
	}
	if r.Bad {
		return nil, fmt.Errorf("malformed commits at position %d", first)
	}
	return commits, nil
}
