package sqlite

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"aob.dev/writ/storage"
)

// bodyVersion is the first byte of every body, erasedVersion of one that parts
// were erased from; see the package comment.
const (
	bodyVersion   = 1
	erasedVersion = 2
)

// digestSize is that of a part digest, in bytes.
const digestSize = 32

const (
	flagTake = 1 << iota
	flagOpen
)

// kinds are stored as their index. Only ever append.
var kinds = []storage.Kind{
	storage.KindOrder, storage.KindOutcome, storage.KindRelease, storage.KindTakeover, storage.KindControl,
}

var errBody = errors.New("malformed record body")

// appendBody encodes everything about an entry but its position, kind and key.
func appendBody(b []byte, e storage.Entry) []byte {
	var flags byte
	if e.Take {
		flags |= flagTake
	}
	if e.Open {
		flags |= flagOpen
	}
	version := byte(bodyVersion)
	if len(e.Record.Erased) > 0 {
		version = erasedVersion
	}
	b = append(b, version, flags)
	b = appendPosition(b, e.Of)
	b = appendPosition(b, e.Holder)
	b = binary.AppendVarint(b, e.Record.At.UnixMilli())
	b = binary.AppendUvarint(b, uint64(len(e.Touches)))
	for _, s := range e.Touches {
		b = appendBytes(b, []byte(s))
	}
	b = binary.AppendUvarint(b, uint64(len(e.Record.Parts)))
	for _, name := range slices.Sorted(maps.Keys(e.Record.Parts)) {
		b = appendBytes(b, []byte(name))
		b = appendBytes(b, e.Record.Salts[name])
		b = appendBytes(b, e.Record.Parts[name])
	}
	if version == bodyVersion {
		return b
	}
	b = binary.AppendUvarint(b, uint64(len(e.Record.Erased)))
	for _, name := range slices.Sorted(maps.Keys(e.Record.Erased)) {
		digest, err := hex.DecodeString(e.Record.Erased[name])
		if err != nil || len(digest) != digestSize {
			digest = make([]byte, digestSize) // erase looks at it before
		}
		b = append(appendBytes(b, []byte(name)), digest...)
	}
	return b
}

// decodeBody is the inverse of appendBody. Parts and salts of the entry share
// the memory of body.
func decodeBody(position int64, kind int, body []byte) (storage.Entry, error) {
	if kind < 0 || kind >= len(kinds) {
		return storage.Entry{}, fmt.Errorf("position %d: unknown kind %d", position, kind)
	}
	r := reader{rest: body}
	version := r.byte()
	if version != bodyVersion && version != erasedVersion {
		return storage.Entry{}, fmt.Errorf("position %d: body version %d, this program knows up to %d", position, version, erasedVersion)
	}
	flags := r.byte()
	e := storage.Entry{Take: flags&flagTake != 0, Open: flags&flagOpen != 0, Of: r.position(), Holder: r.position()}
	e.Record = storage.Record{Position: position, Kind: kinds[kind], At: time.UnixMilli(r.varint()).UTC()}
	for range r.count() {
		e.Touches = append(e.Touches, storage.Subject(r.bytes()))
	}
	parts := r.count()
	e.Record.Parts = make(map[string]json.RawMessage, parts)
	e.Record.Salts = make(map[string][]byte, parts)
	for range parts {
		name := string(r.bytes())
		if salt := r.bytes(); len(salt) > 0 {
			e.Record.Salts[name] = salt
		}
		e.Record.Parts[name] = r.bytes()
	}
	if version == erasedVersion {
		r.erased(&e.Record)
	}
	if r.bad || len(r.rest) > 0 {
		return storage.Entry{}, fmt.Errorf("position %d: %w", position, errBody)
	}
	return e, nil
}

// appendPosition stores Nobody as 0.
func appendPosition(b []byte, p int64) []byte {
	return binary.AppendUvarint(b, uint64(p+1)) //nolint:gosec // G115: positions start at Nobody, which is -1
}

func appendBytes(b, v []byte) []byte {
	return append(binary.AppendUvarint(b, uint64(len(v))), v...)
}

// reader reads what the append functions wrote. It never panics: past the end it
// returns zeros and bad is set.
type reader struct {
	rest []byte
	bad  bool
}

func (r *reader) fail() { r.bad, r.rest = true, nil }

func (r *reader) byte() byte {
	if len(r.rest) == 0 {
		r.fail()
		return 0
	}
	b := r.rest[0]
	r.rest = r.rest[1:]
	return b
}

func (r *reader) uvarint() uint64 {
	v, n := binary.Uvarint(r.rest)
	if n <= 0 {
		r.fail()
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

func (r *reader) varint() int64 {
	v, n := binary.Varint(r.rest)
	if n <= 0 {
		r.fail()
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

func (r *reader) position() int64 { return int64(r.uvarint()) - 1 } //nolint:gosec // G115: written by appendPosition

// count reads a number of items; each takes at least a byte, so a damaged count
// cannot make the caller loop for long.
func (r *reader) count() int {
	n := r.uvarint()
	if n > uint64(len(r.rest)) {
		r.fail()
		return 0
	}
	return int(n) //nolint:gosec // G115: bounded by the length of a slice
}

func (r *reader) take(n int) []byte {
	if n > len(r.rest) {
		r.fail()
		return nil
	}
	v := r.rest[:n:n]
	r.rest = r.rest[n:]
	return v
}

// erased reads what stands for erased parts, and the zeros that keep the body as
// long as it was.
func (r *reader) erased(rec *storage.Record) {
	n := r.count()
	rec.Erased = make(map[string]string, n)
	for range n {
		name := string(r.bytes())
		rec.Erased[name] = hex.EncodeToString(r.take(digestSize))
		if _, twice := rec.Parts[name]; twice {
			r.fail()
		}
	}
	if len(bytes.Trim(r.rest, "\x00")) > 0 || n == 0 {
		r.fail()
		return
	}
	r.rest = nil
}

func (r *reader) bytes() []byte { return r.take(r.count()) }
