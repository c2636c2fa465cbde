package policies

import (
	"encoding/binary"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
)

// MemoSize is how many decisions one generation remembers. When it is full all
// are forgotten: the traffic refills it, and no order of use need be kept.
const MemoSize = 8192

// maxKey keeps large values out of the memo: such an order is decided anew.
const maxKey = 8 << 10

// keys are buffers that a key is made in.
var keys = sync.Pool{New: func() any { b := make([]byte, 0, 512); return &b }}

// memo remembers decisions under exactly what the policy read. It belongs to
// one engine generation and never to two. Denials are remembered as well,
// errors and timeouts never.
type memo struct {
	reads *ReadSet

	mu   sync.RWMutex
	rows map[string]Result // key in full: nothing is decided by a hash

	hits, misses atomic.Int64
}

func newMemo(reads *ReadSet) *memo { return &memo{reads: reads, rows: make(map[string]Result)} }

// appender writes what stands at a path of an input; not ok: it is not JSON.
type appender func(b []byte, path []string) ([]byte, bool)

// key of an input of a type, whose values at writes; not ok where the policy may
// read anything, or where the values are too large to be worth remembering.
func (m *memo) key(buf []byte, typ string, at appender) ([]byte, bool) {
	if m.reads.All {
		return nil, false
	}
	buf, ok := appendAll(buf, m.reads.Paths, at) // the type is among them, if more is read of some
	if !ok || m.reads.ByType == nil {
		return buf, ok
	}
	return appendAll(buf, m.reads.ByType[typ], at)
}

func appendAll(buf []byte, paths [][]string, at appender) (_ []byte, ok bool) {
	for _, path := range paths {
		if buf, ok = at(buf, path); !ok || len(buf) > maxKey {
			return nil, false
		}
	}
	return buf, true
}

// appendAt writes what stands at a path of a document.
func appendAt(b []byte, doc any, path []string) ([]byte, bool) {
	return appendPattern(b, doc, true, path)
}

// appendPattern writes what stands at the rest of a path: of each only how many
// elements or which members there are, and what the path goes on to.
func appendPattern(b []byte, v any, there bool, path []string) (_ []byte, ok bool) {
	switch {
	case !there:
		return append(b, '-'), true // missing is not null
	case len(path) == 0:
		return appendValue(b, v)
	case path[0] != each:
		object, _ := v.(map[string]any)
		v, there = object[path[0]]
		return appendPattern(b, v, there, path[1:])
	}
	switch v := v.(type) {
	case []any:
		b = binary.AppendUvarint(append(b, 'a'), uint64(len(v)))
		for _, x := range v {
			if b, ok = appendPattern(b, x, true, path[1:]); !ok {
				return nil, false
			}
		}
		return b, true
	case map[string]any:
		b = binary.AppendUvarint(append(b, 'o'), uint64(len(v)))
		for _, k := range slices.Sorted(maps.Keys(v)) {
			if b, ok = appendPattern(appendString(b, k), v[k], true, path[1:]); !ok {
				return nil, false
			}
		}
		return b, true
	default:
		return append(b, 'x'), true // has no elements
	}
}

func (m *memo) get(key []byte) (Result, bool) {
	m.mu.RLock()
	r, ok := m.rows[string(key)]
	m.mu.RUnlock()
	if ok {
		m.hits.Add(1)
	} else {
		m.misses.Add(1)
	}
	return r, ok
}

func (m *memo) put(key []byte, r Result) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.rows) >= MemoSize {
		clear(m.rows)
	}
	m.rows[string(key)] = r
}

func lookup(v any, path []string) (any, bool) {
	for _, name := range path {
		object, ok := v.(map[string]any)
		if !ok {
			return nil, false
		}
		if v, ok = object[name]; !ok {
			return nil, false
		}
	}
	return v, true
}

// appendValue writes a value so that different values never give the same
// bytes: a tag, a length where it varies, the content. Not ok: a type that is
// not JSON.
func appendValue(b []byte, v any) ([]byte, bool) {
	switch v := v.(type) {
	case nil:
		return append(b, 'n'), true
	case bool:
		if v {
			return append(b, 't'), true
		}
		return append(b, 'f'), true
	case string:
		return appendString(append(b, 's'), v), true
	case json.Number:
		return appendString(append(b, '0'), string(v)), true
	case int:
		return appendString(append(b, '0'), strconv.Itoa(v)), true
	case []any:
		b = binary.AppendUvarint(append(b, 'a'), uint64(len(v)))
		for _, x := range v {
			var ok bool
			if b, ok = appendValue(b, x); !ok {
				return nil, false
			}
		}
		return b, true
	case map[string]any:
		b = binary.AppendUvarint(append(b, 'o'), uint64(len(v)))
		for _, k := range slices.Sorted(maps.Keys(v)) {
			var ok bool
			if b, ok = appendValue(appendString(b, k), v[k]); !ok {
				return nil, false
			}
		}
		return b, true
	default:
		return nil, false
	}
}

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}
