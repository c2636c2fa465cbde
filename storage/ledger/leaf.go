package ledger

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/transparency-dev/merkle/rfc6962"

	"aob.dev/writ/intents"
	"aob.dev/writ/storage"
)

// MaxLeaf bounds a leaf, in bytes.
const MaxLeaf = 1 << 10

// LeafVersion is the member "v" of a leaf.
const LeafVersion = 1

// Leaf is the commitment to one record. It contains the time and kind of the record.
// Everything else in it is useful only with the record's parts and
// salts.
type Leaf struct {
	At           string       `json:"at"` // RFC 3339, UTC, milliseconds
	Kind         storage.Kind `json:"kind"`
	Position     int64        `json:"position"` // the leaf's index
	RecordDigest string       `json:"record_digest"`
	TenantTag    string       `json:"tenant_tag"`
	V            int          `json:"v"`
}

// NewLeaf commits to a record of a tenant with this tag.
func NewLeaf(r storage.Record, tag string) Leaf {
	return Leaf{At: intents.FormatTime(r.At), Kind: r.Kind, Position: r.Position, RecordDigest: r.Digest(), TenantTag: tag, V: LeafVersion}
}

// Bytes are the RFC 8785 bytes of the leaf: members in order, no white space. No
// value has a character that JSON escapes.
func (l Leaf) Bytes() []byte {
	b := make([]byte, 0, 320)
	b = append(append(b, `{"at":"`...), l.At...)
	b = append(append(b, `","kind":"`...), l.Kind...)
	b = strconv.AppendInt(append(b, `","position":`...), l.Position, 10)
	b = append(append(b, `,"record_digest":"`...), l.RecordDigest...)
	b = append(append(b, `","tenant_tag":"`...), l.TenantTag...)
	b = strconv.AppendInt(append(b, `","v":`...), int64(l.V), 10)
	return append(b, '}')
}

// Hash of the leaf in the tree (RFC 6962, section 2.1).
func (l Leaf) Hash() []byte { return LeafHash(l.Bytes()) }

// LeafHash of a leaf's bytes.
func LeafHash(leaf []byte) []byte { return rfc6962.DefaultHasher.HashLeaf(leaf) }

// commits reports whether a leaf is the commitment to a record. Its tag is not compared:
// whose record it is changes nothing, and the tag secret may have been lost.
func commits(leaf []byte, rec storage.Record) bool {
	l, err := ParseLeaf(leaf)
	return err == nil && bytes.Equal(NewLeaf(rec, l.TenantTag).Bytes(), leaf)
}

// ParseLeaf reads the one spelling that Bytes writes.
func ParseLeaf(b []byte) (Leaf, error) {
	var l Leaf
	if len(b) > MaxLeaf {
		return l, fmt.Errorf("leaf has more than %d bytes", MaxLeaf)
	}
	if err := json.Unmarshal(b, &l); err != nil {
		return l, fmt.Errorf("leaf: %v", err)
	}
	if l.V != LeafVersion || !bytes.Equal(l.Bytes(), b) {
		return l, errors.New("leaf is not the canonical JSON of a version 1 leaf")
	}
	return l, nil
}
