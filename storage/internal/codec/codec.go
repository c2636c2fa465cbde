// Package codec encodes the stored form of a journal entry, the same for each driver.
//
// A body is, in this order: a version byte (1); a flags byte (1: takes a key,
// 2: open); uvarint Target+1; uvarint Holder+1; varint milliseconds of At; uvarint
// number of written subjects, each with its length; uvarint number of parts in
// name order, each as name, salt and bytes with their lengths.
//
// A body with erased parts has version 2 and continues: uvarint number of
// erased parts in name order, each as name with its length and 32 bytes of part
// digest; then any number of zeros.
package codec

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

// DigestSize is that of a part digest, in bytes.
const DigestSize = 32

const (
	flagTake = 1 << iota
	flagOpen
)

// Kinds are stored as their index. Only ever append.
var Kinds = []storage.Kind{
	storage.KindIntent, storage.KindOutcome, storage.KindRelease, storage.KindTakeover, storage.KindControl,
}

var errBody = errors.New("malformed record body")

// Append encodes everything about an entry but its position, kind and key.
func Append(b []byte, e storage.Entry) []byte {
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
	b = appendPosition(b, e.Target)
	b = appendPosition(b, e.Holder)
	b = binary.AppendVarint(b, e.Record.At.UnixMilli())
	b = binary.AppendUvarint(b, uint64(len(e.Writes)))
	for _, s := range e.Writes {
		b = AppendBytes(b, []byte(s))
	}
	b = binary.AppendUvarint(b, uint64(len(e.Record.Parts)))
	for _, name := range slices.Sorted(maps.Keys(e.Record.Parts)) {
		b = AppendBytes(b, []byte(name))
		b = AppendBytes(b, e.Record.Salts[name])
		b = AppendBytes(b, e.Record.Parts[name])
	}
	if version == bodyVersion {
		return b
	}
	b = binary.AppendUvarint(b, uint64(len(e.Record.Erased)))
	for _, name := range slices.Sorted(maps.Keys(e.Record.Erased)) {
		digest, err := hex.DecodeString(e.Record.Erased[name])
		if err != nil || len(digest) != DigestSize {
			digest = make([]byte, DigestSize) // erase looks at it before
		}
		b = append(AppendBytes(b, []byte(name)), digest...)
	}
	return b
}

// Decode is the inverse of Append. Parts and salts of the entry share
// the memory of body.
func Decode(position int64, kind int, body []byte) (storage.Entry, error) {
	if kind < 0 || kind >= len(Kinds) {
		return storage.Entry{}, fmt.Errorf("position %d: unknown kind %d", position, kind)
	}
	r := Reader{Rest: body}
	version := r.Byte()
	if version != bodyVersion && version != erasedVersion {
		return storage.Entry{}, fmt.Errorf("position %d: body version %d, this program knows up to %d", position, version, erasedVersion)
	}
	flags := r.Byte()
	e := storage.Entry{Take: flags&flagTake != 0, Open: flags&flagOpen != 0, Target: r.position(), Holder: r.position()}
	e.Record = storage.Record{Position: position, Kind: Kinds[kind], At: time.UnixMilli(r.varint()).UTC()}
	for range r.Count() {
		e.Writes = append(e.Writes, storage.Subject(r.Bytes()))
	}
	parts := r.Count()
	e.Record.Parts = make(map[string]json.RawMessage, parts)
	e.Record.Salts = make(map[string][]byte, parts)
	for range parts {
		name := string(r.Bytes())
		if salt := r.Bytes(); len(salt) > 0 {
			e.Record.Salts[name] = salt
		}
		e.Record.Parts[name] = r.Bytes()
	}
	if version == erasedVersion {
		r.erased(&e.Record)
	}
	if r.Bad || len(r.Rest) > 0 {
		return storage.Entry{}, fmt.Errorf("position %d: %w", position, errBody)
	}
	return e, nil
}

// appendPosition stores Nobody as 0.
func appendPosition(b []byte, p int64) []byte {
	return binary.AppendUvarint(b, uint64(p+1)) //nolint:gosec // G115: positions start at Nobody, which is -1
}

// AppendBytes appends bytes after their length.
func AppendBytes(b, v []byte) []byte {
	return append(binary.AppendUvarint(b, uint64(len(v))), v...)
}

// Reader reads what the append functions wrote. It never panics: past the end it
// returns zeros and Bad is set.
type Reader struct {
	Rest []byte
	Bad  bool
}

// Fail has the reader be at its end, and Bad.
func (r *Reader) Fail() { r.Bad, r.Rest = true, nil }

// Byte reads one.
func (r *Reader) Byte() byte {
	if len(r.Rest) == 0 {
		r.Fail()
		return 0
	}
	b := r.Rest[0]
	r.Rest = r.Rest[1:]
	return b
}

// Uvarint reads one.
func (r *Reader) Uvarint() uint64 {
	v, n := binary.Uvarint(r.Rest)
	if n <= 0 {
		r.Fail()
		return 0
	}
	r.Rest = r.Rest[n:]
	return v
}

func (r *Reader) varint() int64 {
	v, n := binary.Varint(r.Rest)
	if n <= 0 {
		r.Fail()
		return 0
	}
	r.Rest = r.Rest[n:]
	return v
}

func (r *Reader) position() int64 { return int64(r.Uvarint()) - 1 } //nolint:gosec // G115: written by appendPosition

// Count reads a number of items; each takes at least a byte, so a damaged count
// cannot make the caller loop for long.
func (r *Reader) Count() int {
	n := r.Uvarint()
	if n > uint64(len(r.Rest)) {
		r.Fail()
		return 0
	}
	return int(n) //nolint:gosec // G115: bounded by the length of a slice
}

// Take reads n bytes.
func (r *Reader) Take(n int) []byte {
	if n > len(r.Rest) {
		r.Fail()
		return nil
	}
	v := r.Rest[:n:n]
	r.Rest = r.Rest[n:]
	return v
}

// erased reads the digests of erased parts, and the zeros that keep the body as
// long as it was.
func (r *Reader) erased(rec *storage.Record) {
	n := r.Count()
	rec.Erased = make(map[string]string, n)
	for range n {
		name := string(r.Bytes())
		rec.Erased[name] = hex.EncodeToString(r.Take(DigestSize))
		if _, twice := rec.Parts[name]; twice {
			r.Fail()
		}
	}
	if len(bytes.Trim(r.Rest, "\x00")) > 0 || n == 0 {
		r.Fail()
		return
	}
	r.Rest = nil
}

// Bytes reads bytes after their length.
func (r *Reader) Bytes() []byte { return r.Take(r.Count()) }
