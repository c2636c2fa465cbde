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
//	{"bundle":{"complete":true,"consistency":[…],"first":"…","from":0,"last":"…","origin":"writ/…","size":59,"v":1}}
//	{"tile":{"around":"<base64>","hashes":"<base64>","index":0}}
//	{"blob":{"data":"<base64>","digest":"sha256:…"}}
//	{"record":{"at":"…","kind":"control","parts":{"control":{"salt":"…","text":"…"}},"position":0,"tag":"…"}}
//	{"leaf":{"at":"…","kind":"intent","position":1,"record_digest":"…","tenant_tag":"…","v":1}}
//	{"end":{"lines":71,"sha256":"…"}}
//
// Records and leaves are in the order of their positions; the tile of 256
// leaves that a record or leaf is in comes before the first of them, and a blob before
// the first record that needs it. Every line is RFC 8785. The last line holds the
// SHA-256 of all bytes before it: that finds accidents; what finds forgery are signatures
// and the Merkle tree. docs/spec/ledger.md has the details.
package audit

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"unicode/utf8"

	"aob.dev/writ/intents"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/ledger"
)

// Version of the bundle format.
const Version = 1

// maxLine bounds a line: the largest record with its proof is far below it.
const maxLine = 32 << 20

// hashSize is that of SHA-256.
const hashSize = 32

// The members of all lines are in the order of RFC 8785.

// Header is the first line: what the bundle claims to be.
type Header struct {
	Complete    bool     `json:"complete"` // every position is here, as record or as leaf
	Consistency [][]byte `json:"consistency"`
	// Cosigned is the newest checkpoint that witnesses have cosigned, and Way shows
	// that the log of Last continues its.
	Cosigned string `json:"cosigned,omitempty"`
	First    string `json:"first"` // signed checkpoint of an earlier size
	From     int64  `json:"from"`  // records from here on; earlier ones only where later ones rest on them
	Last     string `json:"last"`  // signed checkpoint of the tree that the tiles are of
	Origin   string `json:"origin"`
	Size     int64  `json:"size"` // leaves of the last checkpoint
	// TagKey shows with Complete that no bare leaf is the tenant's.
	TagKey []byte   `json:"tag_key,omitempty"`
	Tenant string   `json:"tenant,omitempty"` // records of this tenant only, and what they rest on
	V      int      `json:"v"`
	Way    [][]byte `json:"way,omitempty"`
}

// Tile has the hashes of the leaves of a tile (C2SP tlog-tiles), one after another.
type Tile struct {
	Around []byte `json:"around"` // nodes that make the root with them
	Hashes []byte `json:"hashes"`
	Index  int64  `json:"index"`
}

// hash of the leaf at a position; nil: it is in another tile.
func (t *Tile) hash(position int64) []byte {
	if t == nil || position < 0 || position/ledger.TileWidth != t.Index {
		return nil
	}
	at := position % ledger.TileWidth * hashSize
	return t.Hashes[min(at, int64(len(t.Hashes))):min(at+hashSize, int64(len(t.Hashes)))]
}

// Blob is something that decided, by digest: policy files and their list, catalogs.
type Blob struct {
	Data   []byte `json:"data"`
	Digest string `json:"digest"`
}

// Part of a record: its bytes and salt, or only their digest where it is withheld.
type Part struct {
	Base64 []byte `json:"base64,omitempty"` // bytes that are no UTF-8
	Digest string `json:"digest,omitempty"` // withheld: hex SHA-256(salt ‖ bytes)
	Salt   []byte `json:"salt,omitempty"`
	Text   *Text  `json:"text,omitempty"`
}

// Text is the bytes of a part, which are UTF-8.
type Text []byte

// MarshalText implements encoding.TextMarshaler.
func (t Text) MarshalText() ([]byte, error) { return t, nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (t *Text) UnmarshalText(text []byte) error {
	*t = bytes.Clone(text)
	return nil
}

// Entry is a record.
type Entry struct {
	At       string          `json:"at"`
	Kind     storage.Kind    `json:"kind"`
	Parts    map[string]Part `json:"parts"`
	Position int64           `json:"position"`
	Tag      string          `json:"tag"`
}

// End is the last line.
type End struct {
	Lines  int64  `json:"lines"`  // before this one
	SHA256 string `json:"sha256"` // of all bytes before this line, hex
}

// line has exactly one member.
type line struct {
	Bundle *Header      `json:"bundle,omitempty"`
	Tile   *Tile        `json:"tile,omitempty"`
	Blob   *Blob        `json:"blob,omitempty"`
	Record *Entry       `json:"record,omitempty"`
	Leaf   *ledger.Leaf `json:"leaf,omitempty"` // whose record is not in the bundle
	End    *End         `json:"end,omitempty"`
}

func (l line) encode() ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(l); err != nil {
		return nil, err
	}
	out, err := intents.Canonical(bytes.TrimSuffix(buf.Bytes(), []byte(lineEnd)))
	return append(out, '\n'), err
}

const lineEnd = "\n"

var b64 = base64.StdEncoding.Strict()

var errLine = errors.New("not a line of a bundle in its one spelling")

// decodeLine reads a line with its line end, in its one spelling.
func decodeLine(raw string) (l line, err error) {
	body, ended := strings.CutSuffix(raw, lineEnd)
	if !ended {
		return l, errLine
	}
	if strings.HasPrefix(body, `{"record":`) {
		l.Record, err = readEntry(body)
		return l, err
	}
	if leaf, is := strings.CutPrefix(body, `{"leaf":`); is && strings.HasSuffix(leaf, "}") {
		leaf, err := ledger.ParseLeaf([]byte(leaf[:len(leaf)-len("}")]))
		l.Leaf = &leaf
		return l, err
	}
	tree, _ := intents.Tree(body)
	root, _ := tree.(map[string]any)
	if len(root) != 1 || json.Unmarshal([]byte(body), &l) != nil {
		return l, errLine
	}
	if again, err := l.encode(); err != nil || string(again) != raw {
		return l, errLine
	}
	return l, nil
}

// readEntry reads the line of a record, without its end: all members, and no others.
func readEntry(line string) (*Entry, error) {
	e := &Entry{}
	c := intents.ReadCanonical(line)
	read := 0 // members of the record; each is there once
	c.Members("record", func() {
		c.Object(func(name string) {
			read++
			switch name {
			case "at":
				e.At = c.Text()
			case "kind":
				e.Kind = storage.Kind(c.Text())
			case "parts":
				e.Parts = make(map[string]Part, 8)
				c.Object(func(name string) { e.Parts[name] = readPart(c) })
			case "position":
				e.Position = c.Count()
			case "tag":
				e.Tag = c.Text()
			default:
				c.Fail()
			}
		})
	})
	if !c.Done() || read != 5 {
		return nil, errLine
	}
	return e, nil
}

func readPart(c *intents.Cursor) (p Part) {
	filled := func(text string) string { // what is empty is left out
		if text == "" {
			c.Fail()
		}
		return text
	}
	raw := func(to *[]byte) func() {
		return func() {
			text := filled(c.Text())
			var err error
			if *to, err = b64.DecodeString(text); err != nil || strings.ContainsAny(text, "\r\n") {
				c.Fail()
			}
		}
	}
	c.Members("base64", raw(&p.Base64), "digest", func() { p.Digest = filled(c.Text()) }, "salt", raw(&p.Salt), "text", func() {
		text := Text(c.Bytes())
		p.Text = &text
	})
	return p
}

// newEntry is a record as a bundle carries it.
func newEntry(r storage.Record, tag string) *Entry {
	e := &Entry{Position: r.Position, Kind: r.Kind, At: intents.FormatTime(r.At), Tag: tag, Parts: make(map[string]Part, len(r.Parts))}
	for name, body := range r.Parts {
		p := Part{Salt: r.Salts[name]}
		if utf8.Valid(body) {
			p.Text = (*Text)(&body)
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
