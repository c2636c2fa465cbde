package sqlite

import (
	"sync"

	"aob.dev/writ/storage"
)

// tailLimit bounds the tail, in bytes of parts.
const tailLimit = 4 << 20

// tail has the newest durable entries as they were committed. Everything that follows the journal
// (the ledger, the recorder, the index of blobs) reads each record moments after it was written,
// and would have to read, decrypt and decode it from the file once each.
//
// An erasure empties it, after the keys are gone: from then on the file decides what is left of a
// record. Safe for concurrent use.
type tail struct {
	mu      sync.Mutex // guards the rest
	entries []storage.Entry
	sizes   []int
	bytes   int
}

// add adds entries that have just become durable.
func (t *tail) add(entries []storage.Entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range entries {
		size := 0
		for _, part := range e.Record.Parts {
			size += len(part)
		}
		t.entries, t.sizes, t.bytes = append(t.entries, e), append(t.sizes, size), t.bytes+size
	}
	drop := 0
	for ; t.bytes > tailLimit; drop++ {
		t.bytes -= t.sizes[drop]
		t.entries[drop] = storage.Entry{} // the array outlives it
	}
	t.entries, t.sizes = t.entries[drop:], t.sizes[drop:]
}

// read returns the entries of a range; nil: not all are in the tail.
func (t *tail) read(from, to int64) []storage.Entry {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.entries) == 0 || from >= to {
		return nil
	}
	first := t.entries[0].Record.Position
	if from < first || to > first+int64(len(t.entries)) {
		return nil
	}
	return append([]storage.Entry(nil), t.entries[from-first:to-first]...)
}

// forget empties the tail.
func (t *tail) forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.entries, t.sizes, t.bytes = nil, nil, 0
}
