package intents

import (
	"encoding/json"
	"slices"
	"strconv"
)

// Cursor reads a JSON text member by member, and makes no tree of it. A text, or a value of
// another type than the one asked for, that it does not read makes Done false: all that was
// read before is then void.
type Cursor struct {
	s        scanner
	anyOrder bool
	depth    int
	bad      bool
}

// ReadCanonical is the cursor of a text that should be its RFC 8785 bytes. What it returns is part of the text.
func ReadCanonical(text string) *Cursor { return &Cursor{s: scanner{text: text}} }

// readPlain is the cursor of a text that encoding/json has written. It reads what would be
// canonical in another order of the members, and not all that encoding/json reads; that as
// encoding/json does. What it returns shares no memory with the text.
func readPlain(text []byte) *Cursor {
	return &Cursor{s: scanner{text: string(text), plant: true, apart: true}, anyOrder: true}
}

// Done reports whether all of the text was read.
func (c *Cursor) Done() bool { return !c.bad && c.s.i == len(c.s.text) }

// Fail makes Done false.
func (c *Cursor) Fail() { c.bad = true }

// Object calls member for each member, in order. It has to read the value.
func (c *Cursor) Object(member func(name string)) {
	var room [16]string
	names := room[:0]
	c.list('{', '}', func() {
		name, escaped, ok := c.s.quoted()
		switch {
		case !ok || !c.s.next(':'),
			c.anyOrder && (escaped || slices.Contains(names, name)),
			!c.anyOrder && len(names) > 0 && compareNames(names[0], name) >= 0:
			c.Fail()
			return
		case c.anyOrder:
			names = append(names, name)
		default:
			names = append(names[:0], name)
		}
		if escaped {
			name = unescape(name)
		}
		member(name)
	})
}

// Members reads an object of which nothing but these members is known, each by its name and where
// its value goes: *string, *[]string, *int, *int64, *bool, *json.RawMessage, or a func() that reads it.
func (c *Cursor) Members(known ...any) {
	c.Object(func(name string) {
		for i := 0; i < len(known); i += 2 {
			if known[i].(string) == name { //nolint:forcetypeassert // the caller's names
				c.value(known[i+1])
				return
			}
		}
		c.Fail()
	})
}

func (c *Cursor) value(to any) {
	switch to := to.(type) {
	case *string:
		*to = c.Text()
	case *[]string:
		*to = []string{}
		c.list('[', ']', func() { *to = append(*to, c.Text()) })
	case *int:
		*to = int(c.Count())
	case *int64:
		*to = c.Count()
	case *bool:
		*to = c.s.literal("true")
		c.bad = c.bad || !*to && !c.s.literal("false")
	case *json.RawMessage:
		start := c.s.i
		tree := c.s
		tree.plant = false
		_, ok := tree.value(c.depth + 1)
		c.s.i, c.bad = tree.i, c.bad || !ok
		*to = json.RawMessage(c.s.text[start:c.s.i])
	case func():
		to()
	default:
		c.Fail()
	}
}

func (c *Cursor) list(opening, closing byte, element func()) {
	c.depth++
	c.bad = c.bad || c.depth > MaxDepth || !c.s.next(opening)
	if c.bad || !c.s.next(closing) {
		for more := true; more && !c.bad; more = c.s.next(',') {
			element()
		}
		c.bad = c.bad || !c.s.next(closing)
	}
	c.depth--
}

// Text is the value of a string.
func (c *Cursor) Text() string {
	from, to, escaped := c.quoted()
	if c.bad {
		return ""
	}
	return c.s.unquote(from, to, escaped)
}

// Bytes is a copy of the value of a string.
func (c *Cursor) Bytes() []byte {
	from, to, _ := c.quoted()
	if c.bad {
		return nil
	}
	inside := c.s.text[from+1 : to-1]
	out := make([]byte, 0, len(inside))
	for {
		before, escape, after, more := cutEscape(inside)
		if out = append(out, before...); !more {
			return out
		}
		out, inside = append(out, escape), after
	}
}

func (c *Cursor) quoted() (from, to int, escaped bool) {
	from = c.s.i
	_, escaped, ok := c.s.quoted()
	c.bad = c.bad || !ok
	return from, c.s.i, escaped
}

// Count is the value of a whole number.
func (c *Cursor) Count() int64 {
	start := c.s.i
	if c.bad = c.bad || !c.s.numeral(); c.bad {
		return 0
	}
	n, err := strconv.ParseInt(c.s.text[start:c.s.i], 10, 64)
	c.bad = c.bad || err != nil
	return n
}

// Null reads null, which is all that the value may be.
func (c *Cursor) Null() { c.bad = c.bad || !c.s.literal("null") }

// ReadPart decodes a part of a record by members or, where they do not read all of it, by encoding/json.
func ReadPart[T any](part []byte, members func(c *Cursor, v *T)) (v T, err error) {
	c := readPlain(part)
	if members(c, &v); c.Done() {
		return v, nil
	}
	v = *new(T)
	err = json.Unmarshal(part, &v)
	return v, err
}
