package codec

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"slices"

	"aob.dev/writ/storage"
)

// KeySize is the size of a key, in bytes.
const KeySize = 32

// Key encrypts the erasable parts of one record, or its part transient, with AES-256-GCM. A key of
// zeros was destroyed.
type Key [KeySize]byte

// NewKeys returns n random keys, one after the other.
func NewKeys(n int) []byte {
	keys := make([]byte, n*KeySize)
	_, _ = rand.Read(keys) // never fails
	return keys
}

// ByFile sorts slots and yields those of each key file, by its number.
func ByFile(slots []uint64, keysPerFile uint64) iter.Seq2[uint64, []uint64] {
	slices.Sort(slots)
	return func(yield func(uint64, []uint64) bool) {
		for len(slots) > 0 {
			file, n := slots[0]/keysPerFile, 1
			for n < len(slots) && slots[n]/keysPerFile == file {
				n++
			}
			if !yield(file, slots[:n]) {
				return
			}
			slots = slots[n:]
		}
	}
}

// ErrErased reports that a key was destroyed.
var ErrErased = errors.New("the key was destroyed")

// ErrLost reports that a key is not where it should be, or not what it was.
var ErrLost = errors.New("the key is lost")

// LostError reports that the erasable parts of a record cannot be decrypted, although their key
// was not destroyed. They read as erased.
type LostError struct {
	Position int64
	Slot     uint64
	Err      error // wraps ErrLost
}

func (e *LostError) Error() string {
	return fmt.Sprintf("the erasable parts of record %d cannot be read: %v", e.Position, e.Err)
}

func (e *LostError) Unwrap() error { return e.Err }

// Read is the key in some bytes; ErrErased: it was destroyed.
func Read(raw []byte) (k Key, err error) {
	if copy(k[:], raw); k == (Key{}) {
		return k, ErrErased
	}
	return k, nil
}

// sizeOf bounds the plaintext of parts.
func sizeOf(r storage.Record, names []string) (size int) {
	for _, name := range names {
		size += len(r.Salts[name]) + len(r.Parts[name]) + 2*binary.MaxVarintLen32
	}
	return size
}

// appendParts appends the plaintext of parts.
func appendParts(b []byte, r storage.Record, names []string) []byte {
	for _, name := range names {
		b = AppendBytes(b, r.Salts[name])
		b = AppendBytes(b, r.Parts[name])
	}
	return b
}

func aead(key Key) cipher.AEAD {
	block, err := aes.NewCipher(key[:])
	if err != nil {
		panic(err) // only for another length
	}
	gcm, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic(err) // only for another block size
	}
	return gcm
}

// Encrypt returns a random nonce and the ciphertext. covered cannot be changed unnoticed either.
func Encrypt(key Key, plain, covered []byte) []byte {
	return aead(key).Seal(nil, nil, plain, covered) //nolint:gosec // G407: it makes a random nonce itself
}

// Decrypt is the plaintext of what Encrypt returned. ErrLost: the key is another one, or something was
// changed.
func Decrypt(key Key, box, covered []byte) ([]byte, error) {
	plain, err := aead(key).Open(nil, nil, box, covered)
	if err != nil {
		return nil, fmt.Errorf("%w: another one is in its place, or what it encrypts was changed", ErrLost)
	}
	return plain, nil
}

// appendEncrypted appends the length of what follows, a random nonce and the ciphertext of parts. What
// is in b from covered on cannot be changed unnoticed either. The plaintext is behind the ciphertext
// meanwhile, in room that b has anyway.
func appendEncrypted(b []byte, covered int, key Key, r storage.Record, names []string) []byte {
	a := aead(key)
	size := sizeOf(r, names)
	most := len(b) + binary.MaxVarintLen64 + size + a.Overhead()
	b = slices.Grow(b, most+size-len(b))
	plain := appendParts(b[most:most], r, names)
	covers := b[covered:]
	b = binary.AppendUvarint(b, uint64(len(plain)+a.Overhead())) //nolint:gosec // G115: a length
	return a.Seal(b, nil, plain, covers)                         //nolint:gosec // G407: it makes a random nonce itself
}

// ciphertext is parts of a body that are encrypted under one key.
type ciphertext struct {
	slot    uint64
	names   []string // of the parts, in order
	covered []byte   // what is stored from the digests to the slot
	data    []byte
}

// transient reports whether it is of the part transient.
func (c *ciphertext) transient() bool { return c.names[0] == storage.PartTransient }

// decrypt puts the parts into their record, in place of their digests.
func (c *ciphertext) decrypt(key Key, r *storage.Record) error {
	plain, err := Decrypt(key, c.data, c.covered)
	if err != nil {
		return err
	}
	in := Reader{Rest: plain}
	for _, name := range c.names {
		salt, body := in.Bytes(), in.Bytes()
		r.Salts[name], r.Parts[name] = salt, body
	}
	if in.Bad || len(in.Rest) > 0 {
		return errBody
	}
	for _, name := range c.names {
		delete(r.Erased, name)
	}
	if len(r.Erased) == 0 {
		r.Erased = nil
	}
	return nil
}
