// Package plainjson reads JSON that is spelt as our writers spell it, in one pass
// and with few allocations: members in one order, no white space, no escapes
// that encoding/json would not write.
//
// It decides nothing. What a [Cursor] takes, encoding/json would take and read
// the same; of all else it only says that it is not plain, so that the decoder
// is asked. The tests of those who use it hold them to that.
package plainjson

import (
	"bytes"
	"encoding/base64"
	"strconv"
	"unicode/utf8"
)

// Cursor reads one document. What is read without a check of Whole at the end is
// worth nothing.
type Cursor struct {
	b     []byte
	i     int
	odd   bool // something was not plain
	first bool // no member of the object has been read yet
}

// New reads b, which must not be changed before all is read.
func New(b []byte) *Cursor { return &Cursor{b: b} }

// Refuse says that something is not plain after all.
func (c *Cursor) Refuse() { c.odd = true }

// Odd says that something was not plain.
func (c *Cursor) Odd() bool { return c.odd }

// Lit takes a text that stands next.
func (c *Cursor) Lit(s string) bool {
	if len(c.b)-c.i < len(s) || string(c.b[c.i:c.i+len(s)]) != s {
		return false
	}
	c.i += len(s)
	return true
}

// Must takes a text that has to stand next.
func (c *Cursor) Must(s string) {
	if !c.Lit(s) {
		c.odd = true
	}
}

// Whole says that everything was plain and nothing is left.
func (c *Cursor) Whole() bool { return !c.odd && c.i == len(c.b) }

// Object reads the members that fn asks for, in order.
func (c *Cursor) Object(fn func()) {
	c.Must("{")
	c.first = true
	fn()
	c.Must("}")
	c.first = false
}

// Has says that a member, written as "name":, comes next.
func (c *Cursor) Has(name string) bool {
	at := c.i
	if !c.first && !c.Lit(",") {
		return false
	}
	if !c.Lit(name) {
		c.i = at
		return false
	}
	c.first = false
	return true
}

// verbatim are the bytes that stand for themselves in a string: printable ASCII
// without the quote and the backslash.
var verbatim = func() (of [256]bool) {
	for b := byte(' '); b < 0x7f; b++ {
		of[b] = b != '"' && b != '\\'
	}
	return of
}()

// run skips bytes that stand for themselves.
func (c *Cursor) run() {
	for i, b := range c.b[c.i:] {
		if !verbatim[b] {
			c.i += i
			return
		}
	}
	c.i = len(c.b)
}

// Plain takes a string of printable ASCII without escapes. It is a part of the document.
func (c *Cursor) Plain() []byte {
	c.Must(`"`)
	start := c.i
	c.run()
	text := c.b[start:c.i:c.i]
	if !c.Lit(`"`) {
		c.odd = true
		return nil
	}
	return text
}

// Text reads a member of plain text, if it comes next.
func (c *Cursor) Text(name string, into *string) {
	if c.Has(name) {
		*into = string(c.Plain())
	}
}

// Number reads an integer from 0, if the member comes next.
func (c *Cursor) Number(name string) int64 {
	if !c.Has(name) {
		return 0
	}
	return c.Integer()
}

// Integer reads an integer from 0.
func (c *Cursor) Integer() int64 {
	start := c.i
	for c.i < len(c.b) && '0' <= c.b[c.i] && c.b[c.i] <= '9' {
		c.i++
	}
	digits := c.b[start:c.i]
	n, err := strconv.ParseInt(string(digits), 10, 64)
	if err != nil || len(digits) > 1 && digits[0] == '0' {
		c.odd = true
	}
	return n
}

// Flag reads a member that is true, if it comes next.
func (c *Cursor) Flag(name string) bool {
	if !c.Has(name) {
		return false
	}
	c.Must("true")
	return true
}

// List reads an array of plain texts, if the member comes next. An empty one is
// not nil.
func (c *Cursor) List(name string) []string {
	if !c.Has(name) || c.Lit("null") {
		return nil
	}
	c.Must("[")
	out := []string{}
	for !c.odd && !c.Lit("]") {
		if len(out) > 0 {
			c.Must(",")
		}
		out = append(out, string(c.Plain()))
	}
	return out
}

// strict base64, as encoding/json writes it.
var strict = base64.StdEncoding.Strict()

// Bytes reads base64.
func (c *Cursor) Bytes() []byte {
	out, err := strict.AppendDecode(nil, c.Plain())
	if err != nil {
		c.odd = true
	}
	return out
}

// escaped are the escapes that are plain, after the backslash.
var escaped = [256]byte{'"': '"', '\\': '\\', 'n': '\n', 'r': '\r', 't': '\t'}

// escapes of anything else, \u003c among them, are for whoever reads it loosely.
func (c *Cursor) loose() (byte, bool) {
	if len(c.b)-c.i < 6 || string(c.b[c.i:c.i+4]) != `\u00` {
		return 0, false
	}
	n, err := strconv.ParseUint(string(c.b[c.i+4:c.i+6]), 16, 8)
	c.i += 6
	return byte(n), err == nil && n < utf8.RuneSelf
}

// separators are escaped by encoding/json though JSON would not need it.
var separators = []byte("\xe2\x80")

// Any reads a string with escapes. Strictly it takes only the spelling that
// encoding/json gives without HTML escapes.
func (c *Cursor) Any(strictly bool) []byte {
	c.Must(`"`)
	out := make([]byte, 0, c.length())
	ascii := true
	for start := c.i; ; {
		if c.run(); c.i == len(c.b) {
			break
		}
		switch b := c.b[c.i]; {
		case b == '"':
			out = append(out, c.b[start:c.i]...)
			c.i++
			if !ascii && (!utf8.Valid(out) || bytes.Contains(out, separators)) {
				c.odd = true
			}
			return out
		case b == '\\':
			out = append(out, c.b[start:c.i]...)
			if c.i+1 < len(c.b) && escaped[c.b[c.i+1]] != 0 {
				out = append(out, escaped[c.b[c.i+1]])
				c.i += 2
			} else if r, ok := c.loose(); ok && !strictly {
				out = append(out, r)
			} else {
				c.odd = true
				return nil
			}
			start = c.i
		case b < ' ':
			c.odd = true
			return nil
		default: // DEL and what is not ASCII
			ascii = ascii && b < utf8.RuneSelf
			c.i++
		}
	}
	c.odd = true
	return nil
}

// length is how long the text from here may be, to allocate once.
func (c *Cursor) length() int {
	for i := c.i; ; {
		n := bytes.IndexByte(c.b[i:], '"')
		if n < 0 {
			return 0
		}
		if i += n + 1; i < 2 || c.b[i-2] != '\\' {
			return i - c.i
		}
	}
}
