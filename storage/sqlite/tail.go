package sqlite

import (
	"cmp"
	"slices"
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
	mu     sync.Mutex // guards the rest
	groups []written  // oldest first
	bytes  int
}

// written are the entries of a group that were written together, and the bytes of their parts.
type written struct {
	entries []storage.Entry
	bytes   int
}

// first is the position of the first entry, and end the one after the last.
func (w written) first() int64 { return w.entries[0].Record.Position }
func (w written) end() int64   { return w.first() + int64(len(w.entries)) }

// add retains entries that have just become durable. They must not change any more.
func (t *tail) add(entries []storage.Entry) {
	g := written{entries: entries}
	for _, e := range entries {
		for _, part := range e.Record.Parts {
			g.bytes += len(part)
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.groups, t.bytes = append(t.groups, g), t.bytes+g.bytes
	drop := 0
	for ; t.bytes > tailLimit; drop++ {
		t.bytes -= t.groups[drop].bytes
		t.groups[drop] = written{} // the array outlives it
	}
	t.groups = t.groups[drop:]
}

// read returns the entries of a range; nil: not all are in the tail.
func (t *tail) read(from, to int64) (entries []storage.Entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	at, _ := slices.BinarySearchFunc(t.groups, from+1, func(g written, end int64) int { return cmp.Compare(g.end(), end) })
	if at == len(t.groups) || from < t.groups[at].first() {
		return nil
	}
	for ; from < to; at++ {
		if at == len(t.groups) {
			return nil
		}
		g := t.groups[at]
		next := min(to, g.end())
		entries = append(entries, g.entries[from-g.first():next-g.first()]...)
		from = next
	}
	return entries
}

// forget empties the tail.
func (t *tail) forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.groups, t.bytes = nil, 0
}
