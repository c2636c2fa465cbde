// Package codec encodes the stored form of a journal entry, the same for each driver.
//
// A body is, in this order: a version byte (1); a flags byte (1: takes a key,
// 2: open, 4: erasable parts are encrypted, 8: the part transient is); uvarint Target+1; uvarint Holder+1; varint milliseconds of At; uvarint
// number of written subjects, each with its length; uvarint number of parts in
// name order, each as name, salt and bytes with their lengths; uvarint number of part digests
// in name order, each as name with its length and 32 bytes.
//
// An encrypted body continues, for each of the two flags, with the uvarint slot of a key, and the
// ciphertext with its length. The plaintext is salt and bytes, with their lengths, of the part
// transient, or of each other part that has a digest: see encrypt.go. Without a key the parts read
// as erased.
package codec

import (
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"aob.dev/writ/storage"
	"aob.dev/writ/storage/judge"
)

// bodyVersion is the first byte of every body.
const bodyVersion = 1

// DigestSize is that of a part digest, in bytes.
const DigestSize = 32

const (
	flagTake = 1 << iota
	flagOpen
	flagErasable
	flagTransient
)

// Slots are where the keys of a body are: of its erasable parts, and of its part transient. No key
// is in slot 0: these are not encrypted.
type Slots struct{ Erasable, Transient uint64 }

// Kinds are stored as their index. Only ever append.
var Kinds = []storage.Kind{
	storage.KindIntent, storage.KindOutcome, storage.KindRelease, storage.KindTakeover, storage.KindControl,
}

var errBody = errors.New("malformed record body")

// Append encodes everything about an entry but its position, kind and key. It encrypts the
// erasable parts, and the part transient, each under a key that fresh returns, and nothing else may
// use.
func Append(b []byte, e storage.Entry, fresh func() (slot uint64, key Key, err error)) ([]byte, error) {
	var flags byte
	if e.Take {
		flags |= flagTake
	}
	if e.Open {
		flags |= flagOpen
	}
	erasable := e.Record.Erasable()
	encrypted := erasable
	if len(erasable) > 0 {
		_, without := e.Record.Erased[storage.PartTransient]
		if len(e.Record.Erased) > 1 || len(e.Record.Erased) == 1 && !without {
			return nil, fmt.Errorf("position %d: some of its erasable parts are erased, and some are not", e.Record.Position)
		}
		flags |= flagErasable
	}
	if _, there := e.Record.Parts[storage.PartTransient]; there {
		encrypted = append(slices.Clone(erasable), storage.PartTransient)
		flags |= flagTransient
	}
	b = append(b, bodyVersion, flags)
	b = appendPosition(b, e.Target)
	b = appendPosition(b, e.Holder)
	b = binary.AppendVarint(b, e.Record.At.UnixMilli())
	b = binary.AppendUvarint(b, uint64(len(e.Writes)))
	for _, s := range e.Writes {
		b = AppendBytes(b, []byte(s))
	}
	b = binary.AppendUvarint(b, uint64(len(e.Record.Parts)-len(encrypted))) //nolint:gosec // G115: the encrypted are some of the parts
	for _, name := range slices.Sorted(maps.Keys(e.Record.Parts)) {
		if slices.Contains(encrypted, name) {
			continue
		}
		b = AppendBytes(b, []byte(name))
		b = AppendBytes(b, e.Record.Salts[name])
		b = AppendBytes(b, e.Record.Parts[name])
	}
	covered := len(b)
	b, err := appendDigests(b, e.Record, encrypted)
	if err != nil {
		return nil, err
	}
	for _, names := range [][]string{erasable, encrypted[len(erasable):]} {
		if len(names) == 0 {
			continue
		}
		slot, key, err := fresh()
		if err != nil {
			return nil, err
		}
		b = binary.AppendUvarint(b, slot)
		b = appendEncrypted(b, covered, key, e.Record, names)
	}
	return b, nil
}

// appendDigests appends those of erased parts, and of parts that are encrypted.
func appendDigests(b []byte, r storage.Record, encrypted []string) ([]byte, error) {
	b = binary.AppendUvarint(b, uint64(len(r.Erased)+len(encrypted)))
	for _, name := range slices.Sorted(slices.Values(append(slices.Collect(maps.Keys(r.Erased)), encrypted...))) {
		b = AppendBytes(b, []byte(name))
		text, erased := r.Erased[name]
		if !erased {
			sum := storage.PartSum(r.Salts[name], r.Parts[name])
			b = append(b, sum[:]...)
			continue
		}
		digest, err := hex.DecodeString(text)
		if err != nil || len(digest) != DigestSize {
			return nil, fmt.Errorf("position %d: the digest of part %q is none", r.Position, name)
		}
		b = append(b, digest...)
	}
	return b, nil
}

// Decode is the inverse of Append; key returns the key of a slot, ErrErased, ErrLost, or why it
// cannot be read now. Parts and salts of the entry share the memory of body. With a *LostError
// the entry is usable: what cannot be decrypted reads as erased.
func Decode(position int64, kind int, body []byte, key func(slot uint64) (Key, error)) (storage.Entry, error) {
	e, encrypted, err := parse(position, kind, body)
	if err != nil {
		return e, err
	}
	var lost error
	for _, c := range encrypted {
		k, err := key(c.slot)
		if err == nil {
			err = c.decrypt(k, &e.Record)
		}
		switch {
		case err == nil, errors.Is(err, ErrErased):
		case errors.Is(err, ErrLost):
			e.Lost = true
			lost = cmp.Or(lost, error(&LostError{Position: position, Slot: c.slot, Err: err}))
		default:
			return storage.Entry{}, fmt.Errorf("position %d: the key of its erasable parts: %w", position, err)
		}
	}
	return e, lost
}

// SlotsOf returns where the keys of a body are.
func SlotsOf(position int64, kind int, body []byte) (s Slots, err error) {
	_, encrypted, err := parse(position, kind, body)
	for _, c := range encrypted {
		if c.transient() {
			s.Transient = c.slot
		} else {
			s.Erasable = c.slot
		}
	}
	return s, err
}

// parse reads all that needs no key.
func parse(position int64, kind int, body []byte) (e storage.Entry, encrypted []ciphertext, err error) {
	if kind < 0 || kind >= len(Kinds) {
		return e, nil, fmt.Errorf("position %d: unknown kind %d", position, kind)
	}
	r := Reader{Rest: body}
	if version := r.Byte(); version != bodyVersion {
		return e, nil, fmt.Errorf("position %d: body version %d, this program knows %d", position, version, bodyVersion)
	}
	flags := r.Byte()
	e = storage.Entry{Take: flags&flagTake != 0, Open: flags&flagOpen != 0, Target: r.position(), Holder: r.position()}
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
	covered := r.Rest
	names := r.digests(&e.Record)
	if flags&flagErasable != 0 {
		others := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == storage.PartTransient })
		encrypted = append(encrypted, r.ciphertext(others, covered))
	}
	if flags&flagTransient != 0 {
		if !slices.Contains(names, storage.PartTransient) {
			r.Fail()
		}
		encrypted = append(encrypted, r.ciphertext([]string{storage.PartTransient}, covered))
	}
	if r.Bad || len(r.Rest) > 0 {
		return storage.Entry{}, nil, fmt.Errorf("position %d: %w", position, errBody)
	}
	return e, encrypted, nil
}

// ciphertext reads that of some parts; covered is the rest of the body from the digests on.
func (r *Reader) ciphertext(names []string, covered []byte) ciphertext {
	if len(names) == 0 {
		r.Fail()
	}
	c := ciphertext{slot: r.Uvarint(), names: names}
	c.covered = covered[:len(covered)-len(r.Rest)]
	c.data = r.Bytes()
	return c
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

// digests reads those of parts that are not in the clear, in order.
func (r *Reader) digests(rec *storage.Record) (names []string) {
	n := r.Count()
	if n > 0 {
		rec.Erased = make(map[string]string, n)
	}
	for range n {
		name := string(r.Bytes())
		_, clear := rec.Parts[name]
		_, twice := rec.Erased[name]
		if clear || twice {
			r.Fail()
		}
		rec.Erased[name] = hex.EncodeToString(r.Take(DigestSize))
		names = append(names, name)
	}
	return names
}

// Bytes reads bytes after their length.
func (r *Reader) Bytes() []byte { return r.Take(r.Count()) }

// AppendCommits encodes the commits of a group of records, of which the first has a position:
// each as uvarint offset, uvarint number of records, and its ID with its length.
func AppendCommits(b []byte, first int64, commits []judge.Committed) []byte {
	for _, c := range commits {
		b = binary.AppendUvarint(b, uint64(c.First-first)) //nolint:gosec // G115: never before the first of its group
		b = binary.AppendUvarint(b, uint64(c.N))           //nolint:gosec // G115: a length
		b = AppendBytes(b, []byte(c.ID))
	}
	return b
}

// DecodeCommits is the inverse of AppendCommits.
func DecodeCommits(first int64, raw []byte) (commits []judge.Committed, err error) {
	r := Reader{Rest: raw}
	for len(r.Rest) > 0 {
		offset, n := r.Uvarint(), r.Uvarint()
		if n > judge.EntriesLimit {
			r.Fail()
		}
		commits = append(commits, judge.Committed{
			First: first + int64(offset), //nolint:gosec // G115: written by AppendCommits
			N:     int(n),                //nolint:gosec // G115: bounded
			ID:    string(r.Bytes()),
		})
	}
	if r.Bad {
		return nil, fmt.Errorf("malformed commits at position %d", first)
	}
	return commits, nil
}
