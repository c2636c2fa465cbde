package jetstream

import (
	"bytes"
	"encoding/gob"
	"fmt"
	"io"
	"sort"

	"aob.dev/writ/storage"
	"aob.dev/writ/storage/judge"
)

// markEvery so many groups it is known where one is. Others are searched for between two.
const markEvery = 256

// mark is where a group is.
type mark struct {
	First int64  // position of its first record
	Place uint64 // sequence that it was written at
}

// StreamIndex is built from the messages of the stream up to one of them. It is stored in a
// snapshot, so that not all of them are read at every opening. One goroutine uses it.
type StreamIndex struct {
	state *judge.State
	at
}

// at is the place of an index in the stream.
type at struct {
	Seq    uint64 // all messages up to it were read
	Groups int64
	Last   mark   // of the last group
	Marks  []mark // in order
}

// NewStreamIndex is that of no messages.
func NewStreamIndex() *StreamIndex {
	return &StreamIndex{state: judge.NewState()}
}

// Next is the position after the last record that it has read.
func (f *StreamIndex) Next() int64 { return f.state.Next() }

// fits reports whether a group comes next.
func (f *StreamIndex) fits(g block) error {
	if g.First != f.Next() {
		return fmt.Errorf("the group begins with record %d, and record %d is next", g.First, f.Next())
	}
	return nil
}

// apply the next message, which is a group.
func (f *StreamIndex) apply(m message, g block, seen storage.Observer) {
	for _, e := range g.entries {
		seen(e)
		f.state.Apply(e)
	}
	for _, c := range g.Commits {
		f.state.Remember(c)
	}
	f.Seq, f.Last = m.seq, mark{g.First, m.seq}
	if f.Groups%markEvery == 0 {
		f.Marks = append(f.Marks, f.Last)
	}
	f.Groups++
}

// around returns the places between which the group of a position is: from low on, and before high.
// ok is false if the index has no such position.
func (f *StreamIndex) around(position int64) (low, high uint64, ok bool) {
	if position < 0 || position >= f.Next() {
		return 0, 0, false
	}
	if position >= f.Last.First {
		return f.Last.Place, f.Last.Place + 1, true
	}
	i := sort.Search(len(f.Marks), func(i int) bool { return f.Marks[i].First > position })
	low, high = f.Marks[i-1].Place, f.Last.Place
	if i < len(f.Marks) {
		high = f.Marks[i].Place
	}
	return low, high, true
}

// image is what a snapshot has beside the judge's state.
type image struct {
	At     at
	Recent []judge.Committed
}

// Write it so that ReadStreamIndex reads it. The same messages give the same bytes.
func (f *StreamIndex) Write(w io.Writer) error {
	if err := f.state.Write(w); err != nil {
		return err
	}
	i := image{At: f.at, Recent: f.state.RecentCommits()}
	return gob.NewEncoder(w).Encode(i)
}

// ReadStreamIndex reads what Write wrote, and leaves what follows it. Whoever stores the bytes
// must ensure with a signature that they are unchanged.
func ReadStreamIndex(r *bytes.Reader) (*StreamIndex, error) {
	s, err := judge.Read(r)
	if err != nil {
		return nil, err
	}
	var i image
	if err := gob.NewDecoder(r).Decode(&i); err != nil {
		return nil, err
	}
	f := &StreamIndex{state: s, at: i.At}
	for _, c := range i.Recent {
		s.Remember(c)
	}
	return f, nil
}
