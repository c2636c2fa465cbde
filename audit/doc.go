// Package audit contains the auditor's tools: it exports a part of the record as one
// file, verifies such a file with no server and no trust in its writer,
// and decides every intent in it again.
//
// The auditor takes the state that the records build, and which intents of the router
// are legal on it, from package state, as the router does, so both share a mistake there. What
// finds such a mistake is written apart from them: the second implementation in
// JavaScript (intents/testdata/second), and the logs of dishonest routers in
// testdata/illegal, which both have to refuse.
//
// # Bundle
//
// A bundle is JSON lines (UTF-8, "\n"), each an object with one member:
//
//	{"bundle":{"v":1,"origin":"writ/…","size":59,"from":0,"complete":true,"first":"…","last":"…","consistency":[…]}}
//	{"blob":{"digest":"sha256:…","data":"<base64>"}}
//	{"record":{"position":0,"kind":"control","at":"…","tag":"…","parts":{"control":{"text":"…","salt":"…"}},"proof":"<base64>"}}
//	{"leaf":{"leaf":"{…}","proof":"<base64>"}}
//	{"end":{"lines":71,"sha256":"…"}}
//
// Records and leaves are in the order of their positions; a blob comes before
// the first record that needs it. Every line has one legal spelling, the one
// that this package writes. The last line holds the SHA-256 of all bytes before
// it: that finds accidents; what finds forgery are signatures and the Merkle
// tree. docs/spec/ledger.md has the details.
package audit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"aob.dev/writ/intents"
	"aob.dev/writ/storage"
)

// Version of the bundle format.
const Version = 1

// maxLine bounds a line: the largest record with its proof is far below it.
const maxLine = 32 << 20

// hashSize is that of SHA-256.
const hashSize = 32

// Header is the first line: what the bundle claims to be.
type Header struct {
	V        int    `json:"v"`
	Origin   string `json:"origin"`
	Size     int64  `json:"size"`             // leaves of the last checkpoint
	From     int64  `json:"from"`             // records from here on; earlier ones only where later ones rest on them
	Tenant   string `json:"tenant,omitempty"` // records of this tenant only, and what they rest on
	Complete bool   `json:"complete"`         // every position is here, as record or as leaf
	// TagKey shows with Complete that no bare leaf is the tenant's.
	TagKey      []byte   `json:"tag_key,omitempty"`
	First       string   `json:"first"` // signed checkpoint of an earlier size
	Last        string   `json:"last"`  // signed checkpoint that the proofs are for
	Consistency [][]byte `json:"consistency"`
	// Cosigned is the newest checkpoint that witnesses have cosigned, and Way shows
	// that the log of Last continues its.
	Cosigned string   `json:"cosigned,omitempty"`
	Way      [][]byte `json:"way,omitempty"`
}

// Blob is something that decided, by digest: policy files and their list, catalogs.
type Blob struct {
	Digest string `json:"digest"`
	Data   []byte `json:"data"`
}

// Part of a record: its bytes and salt, or only their digest where it is withheld.
type Part struct {
	Text   *string `json:"text,omitempty"`
	Base64 []byte  `json:"base64,omitempty"` // bytes that are no UTF-8
	Salt   []byte  `json:"salt,omitempty"`
	Digest string  `json:"digest,omitempty"` // withheld: hex SHA-256(salt ‖ bytes)
}

// Entry is a record with the proof that it is in the log.
type Entry struct {
	Position int64           `json:"position"`
	Kind     storage.Kind    `json:"kind"`
	At       string          `json:"at"`
	Tag      string          `json:"tag"`
	Parts    map[string]Part `json:"parts"`
	Proof    []byte          `json:"proof"` // inclusion hashes, one after another
}

// Bare is a leaf whose record is not in the bundle.
type Bare struct {
	Leaf  string `json:"leaf"`
	Proof []byte `json:"proof"`
}

// End is the last line.
type End struct {
	Lines  int64  `json:"lines"`  // before this one
	SHA256 string `json:"sha256"` // of all bytes before this line, hex
}

// line has exactly one member.
type line struct {
	Bundle *Header `json:"bundle,omitempty"`
	Blob   *Blob   `json:"blob,omitempty"`
	Record *Entry  `json:"record,omitempty"`
	Leaf   *Bare   `json:"leaf,omitempty"`
	End    *End    `json:"end,omitempty"`
}

func (l line) encode() ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	err := enc.Encode(l)
	return buf.Bytes(), err
}

// decodeLine reads a line with its line end, in its one spelling.
func decodeLine(raw []byte) (line, error) {
	var l line
	if err := json.Unmarshal(raw, &l); err != nil {
		return l, errors.New("not a line of a bundle")
	}
	n := 0
	for _, there := range []bool{l.Bundle != nil, l.Blob != nil, l.Record != nil, l.Leaf != nil, l.End != nil} {
		if there {
			n++
		}
	}
	again, err := l.encode()
	if err != nil || n != 1 || !bytes.Equal(again, raw) {
		return l, errors.New("not a line of a bundle in its one spelling")
	}
	return l, nil
}

// newEntry is a record as a bundle carries it.
func newEntry(r storage.Record, tag string, proof [][]byte) *Entry {
	e := &Entry{Position: r.Position, Kind: r.Kind, At: intents.FormatTime(r.At), Tag: tag, Parts: make(map[string]Part, len(r.Parts)), Proof: join(proof)}
	for name, body := range r.Parts {
		p := Part{Salt: r.Salts[name]}
		if utf8.Valid(body) {
			text := string(body)
			p.Text = &text
		} else {
			p.Base64 = body
		}
		e.Parts[name] = p
	}
	for name, digest := range r.Erased {
		e.Parts[name] = Part{Digest: digest}
	}
	return e
}

// splitProof splits inclusion hashes.
func splitProof(proof []byte) ([][]byte, error) {
	if len(proof)%hashSize != 0 || len(proof) > 64*hashSize {
		return nil, fmt.Errorf("proof has %d bytes", len(proof))
	}
	var out [][]byte
	for ; len(proof) > 0; proof = proof[hashSize:] {
		out = append(out, proof[:hashSize:hashSize])
	}
	return out, nil
}

// join makes one string of inclusion hashes; never nil.
func join(proof [][]byte) []byte {
	out := make([]byte, 0, len(proof)*hashSize)
	for _, h := range proof {
		out = append(out, h...)
	}
	return out
}
