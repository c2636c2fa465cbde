package policies

import (
	"encoding/binary"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	lru "github.com/hashicorp/golang-lru/v2"
)

// MemoSize is the number of decisions that the generations of one tree remember. When it is full, the
// one that was not asked for the longest is forgotten.
const MemoSize = 8192

// maxKey keeps large values out of the memo: such an intent is evaluated each time.
const maxKey = 8 << 10

// keys are buffers for keys.
var keys = sync.Pool{New: func() any { b := make([]byte, 0, 512); return &b }}

// memo stores the decisions of a tree's generations, each under its number and the values at all paths
// that the policy can read. It stores denials too, but never errors or timeouts.
type memo struct {
	rows        *lru.Cache[string, Result] // full key: no decision depends on a hash
	generations atomic.Uint64

	hits, misses atomic.Int64
}

func newMemo() *memo {
	rows, _ := lru.New[string, Result](MemoSize) // an error is of a size below 1
	return &memo{rows: rows}
}

// memoKey of an input: the values at all paths, appended to what is in buf; not ok if the values are too
// large to store.
func memoKey(buf []byte, paths []lookup, at func(*lookup) (any, bool)) (_ []byte, ok bool) {
	for i := range paths {
		v, there := at(&paths[i])
		if !there {
			buf = append(buf, undefined)
			continue
		}
		if buf, ok = appendValue(buf, v); !ok || len(buf) > maxKey {
			return nil, false
		}
	}
	return buf, true
}

// undefined stands for a path without a value: no value's encoding begins with it, so it differs
// from null too.
const undefined = '-'

func (m *memo) get(key []byte) (Result, bool) {
	r, ok := m.rows.Get(string(key))
	if ok {
		m.hits.Add(1)
	} else {
		m.misses.Add(1)
	}
	return r, ok
}

func (m *memo) put(key []byte, r Result) { m.rows.Add(string(key), r) }

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
	case []string:
		b = binary.AppendUvarint(append(b, 'a'), uint64(len(v)))
		for _, s := range v {
			b = appendString(append(b, 's'), s)
		}
		return b, true
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
