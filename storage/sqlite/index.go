package sqlite

import (
	"bytes"
	"io"

	"aob.dev/writ/storage"
	"aob.dev/writ/storage/internal/judge"
)

// Index is what a journal knows of its records in memory: who holds which key, where
// each order is, what touched a subject last. It follows from the records, and is kept
// in a snapshot so that not all of them are read at every opening. One goroutine uses it.
type Index struct{ state *judge.State }

// NewIndex is that of no records.
func NewIndex() *Index { return &Index{judge.NewState()} }

// Observe takes the next record; see Records.Entries.
func (x *Index) Observe(e storage.Entry) { x.state.Apply(e) }

// Next is the position after the last record that it has seen.
func (x *Index) Next() int64 { return x.state.Next() }

// Write it so that ReadIndex reads it. The same records give the same bytes.
func (x *Index) Write(w io.Writer) error { return x.state.Write(w) }

// ReadIndex reads what Write wrote, and leaves what stands behind it. Whoever stores
// the bytes has to say with a signature that they are the same.
func ReadIndex(r *bytes.Reader) (*Index, error) {
	s, err := judge.Read(r)
	return &Index{s}, err
}
