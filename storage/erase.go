package storage

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"maps"
)

// Erasure names parts of one record.
type Erasure struct {
	Position int64
	Parts    []string
}

// Eraser is a journal that can erase parts of its records. A journal that would
// leave bytes behind does not implement it.
type Eraser interface {
	// Erase puts the part digests of the named parts in the place of their bytes
	// and salts. The records keep their position, kind, time and digest. A part
	// that is erased already, or that the record does not have, is left as it is.
	// ErrNotFound where there is no such record; then, and with any other error,
	// part of what was named may be erased: to name it again is safe.
	//
	// Durability: when Erase returns without error, also one that found nothing
	// left to erase, the bytes are in none of the journal's own files any more,
	// after a power cut neither. Until then they may be in any of them. Copies
	// that others made (backups, snapshots of the disk), and blocks that a file
	// system or a drive keeps of what was overwritten, are not reached.
	Erase(ctx context.Context, what ...Erasure) error
}

// PartDigest is hex SHA-256(salt ‖ part bytes), as Record.Digest takes it.
func PartDigest(salt, body []byte) string {
	var sum [sha256.Size]byte
	h := sha256.New()
	h.Write(salt) // never fails
	h.Write(body)
	return hex.EncodeToString(h.Sum(sum[:0]))
}

// Without is the record after the erasure of some of its parts; changed is false
// where it has none of them. The record itself is left as it is.
func (r Record) Without(parts ...string) (erased Record, changed bool) {
	for _, name := range parts {
		body, there := r.Parts[name]
		if !there {
			continue
		}
		if !changed {
			r.Parts, r.Salts, r.Erased = maps.Clone(r.Parts), maps.Clone(r.Salts), maps.Clone(r.Erased)
			if r.Erased == nil {
				r.Erased = make(map[string]string)
			}
			changed = true
		}
		r.Erased[name] = PartDigest(r.Salts[name], body)
		delete(r.Parts, name)
		delete(r.Salts, name)
	}
	return r, changed
}
