package sqlite

import (
	"encoding/json"
	"strings"
	"testing"

	"aob.dev/writ/storage"
)

// TestTail: the tail has the newest groups of entries up to its bound, and a range that it does not have whole
// is not in it.
func TestTail(t *testing.T) {
	var newest tail
	entry := func(position int64, size int) storage.Entry {
		return storage.Entry{Record: storage.Record{Position: position, Parts: map[string]json.RawMessage{"part": json.RawMessage(strings.Repeat("x", size))}}}
	}
	has := func(from, to int64, want bool) {
		t.Helper()
		got := newest.read(from, to)
		if (got != nil) != want {
			t.Fatalf("%d to %d: %d entries", from, to, len(got))
		}
		for i, e := range got {
			if e.Record.Position != from+int64(i) {
				t.Fatalf("%d to %d: position %d", from, to, e.Record.Position)
			}
		}
	}
	has(0, 1, false)
	newest.add([]storage.Entry{entry(7, 10), entry(8, 10)})
	has(7, 9, true)
	has(8, 9, true)
	has(6, 8, false)
	has(8, 10, false)
	has(8, 8, false)
	newest.add([]storage.Entry{entry(9, 10)})
	newest.add([]storage.Entry{entry(10, 10), entry(11, 10), entry(12, 10)})
	for from := int64(6); from < 14; from++ {
		for to := from; to < 15; to++ {
			has(from, to, from < to && 7 <= from && to <= 13)
		}
	}
	newest.add([]storage.Entry{entry(13, tailLimit-40)})
	has(8, 14, false) // what was written together leaves together
	has(9, 14, true)
	newest.add([]storage.Entry{entry(14, tailLimit+1)})
	has(14, 15, false)
	newest.add([]storage.Entry{entry(15, 1)})
	has(15, 16, true)
	newest.forget()
	has(15, 16, false)
	newest.add([]storage.Entry{entry(16, 1)})
	has(16, 17, true)
}
