package audit

import (
	"bytes"
	"encoding/base64"
	"strconv"
	"unicode/utf8"
)

// cursor reads JSON that is spelt as our writers spell it: members in one order,
// no white space. It decides nothing: what it takes encoding/json would take and
// read the same, and of all else it only says that it is not plain, so that
// the decoder is asked.
type cursor struct {
	b     []byte
	i     int
	odd   bool // something was not plain: what was read is worth nothing
	first bool // no member of the object has been read yet
}

// lit takes a text that stands next.
func (c *cursor) lit(s string) bool {
	if len(c.b)-c.i < len(s) || string(c.b[c.i:c.i+len(s)]) != s {
		return false
	}
	c.i += len(s)
	return true
}

func (c *cursor) must(s string) {
	if !c.lit(s) {
		c.odd = true
	}
}

// whole says that everything was plain and nothing is left.
func (c *cursor) whole() bool { return !c.odd && c.i == len(c.b) }

// object reads the members that fn asks for, in order.
func (c *cursor) object(fn func()) {
	c.must("{")
	c.first = true
	fn()
	c.must("}")
	c.first = false
}

// has says that a member, written as "name":, comes next.
func (c *cursor) has(name string) bool {
	at := c.i
	if !c.first && !c.lit(",") {
		return false
	}
	if !c.lit(name) {
		c.i = at
		return false
	}
	c.first = false
	return true
}

// plain takes a string of printable ASCII without escapes.
func (c *cursor) plain() []byte {
	c.must(`"`)
	start := c.i
	for c.i < len(c.b) {
		switch b := c.b[c.i]; {
		case b == '"':
			c.i++
			return c.b[start : c.i-1]
		case b < ' ' || b >= 0x7f || b == '\\':
			c.odd = true
			return nil
		}
		c.i++
	}
	c.odd = true
	return nil
}

// text reads a member of plain text, if it comes next.
func (c *cursor) text(name string, into *string) {
	if c.has(name) {
		*into = string(c.plain())
	}
}

// number reads an integer from 0, if the member comes next.
func (c *cursor) number(name string) int64 {
	if !c.has(name) {
		return 0
	}
	return c.integer()
}

func (c *cursor) integer() int64 {
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

// flag reads a member that is true, if it comes next.
func (c *cursor) flag(name string) bool {
	if !c.has(name) {
		return false
	}
	c.must("true")
	return true
}

// list reads an array of plain texts, if the member comes next. An empty one is
// not nil.
func (c *cursor) list(name string) []string {
	if !c.has(name) || c.lit("null") {
		return nil
	}
	c.must("[")
	out := []string{}
	for !c.odd && !c.lit("]") {
		if len(out) > 0 {
			c.must(",")
		}
		out = append(out, string(c.plain()))
	}
	return out
}

// strict base64, as encoding/json writes it.
var strict = base64.StdEncoding.Strict()

// bytes reads base64.
func (c *cursor) bytes() []byte {
	out, err := strict.AppendDecode(nil, c.plain())
	if err != nil {
		c.odd = true
	}
	return out
}

// escaped are the escapes that are plain, after the backslash.
var escaped = [256]byte{'"': '"', '\\': '\\', 'n': '\n', 'r': '\r', 't': '\t'}

// escapes of anything else, \u003c among them, are for whoever reads it loosely.
func (c *cursor) loose() (byte, bool) {
	if len(c.b)-c.i < 6 || string(c.b[c.i:c.i+4]) != `\u00` {
		return 0, false
	}
	n, err := strconv.ParseUint(string(c.b[c.i+4:c.i+6]), 16, 8)
	c.i += 6
	return byte(n), err == nil && n < utf8.RuneSelf
}

// separators are escaped by encoding/json though JSON would not need it.
var separators = []byte("\xe2\x80")

// any reads a string with escapes. Strictly it takes only the spelling that
// encoding/json gives without HTML escapes.
func (c *cursor) any(strictly bool) []byte {
	c.must(`"`)
	out := make([]byte, 0, c.length())
	ascii := true
	for start := c.i; c.i < len(c.b); {
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
		default:
			ascii = ascii && b < utf8.RuneSelf
			c.i++
		}
	}
	c.odd = true
	return nil
}

// length is how long the text from here may be, to allocate once.
func (c *cursor) length() int {
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
