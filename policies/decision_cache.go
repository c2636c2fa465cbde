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

// MemoSize is the number of decisions that one generation remembers. When it is full all are
// forgotten: the traffic refills it, and no record of recent use is needed.
const MemoSize = 8192

// maxKey keeps large values out of the memo: such an intent is evaluated each time.
const maxKey = 8 << 10

// keys are buffers for keys.
var keys = sync.Pool{New: func() any { b := make([]byte, 0, 512); return &b }}

// memo stores decisions under the values at all paths that the policy can read. It belongs to
// exactly one engine generation. It stores denials too, but never errors or timeouts.
type memo struct {
	reads *ReadSet

	mu   sync.RWMutex
	rows map[string]Result // full key: no decision depends on a hash

	hits, misses atomic.Int64
}

func newMemo(reads *ReadSet) *memo { return &memo{reads: reads, rows: make(map[string]Result)} }

// key of an input: the values at all paths; not ok if the policy may read anything, or if the
// values are too large to store.
func (m *memo) key(buf []byte, input map[string]any) (_ []byte, ok bool) {
	if m.reads.All {
		return nil, false
	}
	for _, path := range m.reads.Paths {
		if buf, ok = appendAt(buf, input, path); !ok || len(buf) > maxKey {
			return nil, false
		}
	}
	return buf, true
}

// appendAt writes the value at a path of a document.
func appendAt(b []byte, doc any, path []string) ([]byte, bool) {
	for _, name := range path {
		object, _ := doc.(map[string]any)
		inner, there := object[name]
		if !there {
			return append(b, undefined), true
		}
		doc = inner
	}
	return appendValue(b, doc)
}

// undefined stands for a path without a value: no value's encoding begins with it, so it differs
// from null too.
const undefined = '-'

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
