package intents

import (
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/gowebpki/jcs"
)

// scanner accepts exactly the texts that RFC 8785 would not change, within
// MaxDepth: no white space, members strictly ascending by UTF-16 code units
// (§3.2.3; so there are no duplicates), strings with the shortest escapes (§3.2.2.2),
// numbers as ECMAScript prints them (§3.2.2.3). In the same pass it makes the
// value tree.
type scanner struct {
	text  string
	i     int
	plant bool // the tree is wanted
	apart bool // its strings are copies, and no parts of the text

	above                         int    // levels above the envelope: 1 in a dispatch
	within                        string // the envelope's member that is being read
	sig, transient, args, payload span
}

// scan reads bytes that are canonical, and plants their tree if that is wanted.
func scan(b []byte, plant bool) (canonical, bool) {
	c, ok := scanText(string(b), plant)
	c.bytes = b
	return c, ok
}

// scanText is scan for a text; without its bytes.
func scanText(text string, plant bool) (canonical, bool) {
	s := scanner{text: text, plant: plant}
	return s.canonical()
}

func (s *scanner) canonical() (canonical, bool) {
	tree, ok := s.document()
	return canonical{nil, tree, s.sig, s.transient, s.args, s.payload}, ok
}

func (s *scanner) document() (any, bool) {
	v, ok := s.value(1)
	return v, ok && s.i == len(s.text)
}

func (s *scanner) value(depth int) (v any, ok bool) {
	if s.i >= len(s.text) {
		return nil, false
	}
	switch c := s.text[s.i]; {
	case c == '{':
		return s.object(depth)
	case c == '[':
		return s.array(depth)
	case c == '"':
		return s.string()
	case c == 't':
		return true, s.literal("true")
	case c == 'f':
		return false, s.literal("false")
	case c == 'n':
		return nil, s.literal("null")
	default:
		return s.number()
	}
}

func (s *scanner) literal(word string) bool {
	if !strings.HasPrefix(s.text[s.i:], word) {
		return false
	}
	s.i += len(word)
	return true
}

// next consumes one byte if it is c.
func (s *scanner) next(c byte) bool {
	if s.i < len(s.text) && s.text[s.i] == c {
		s.i++
		return true
	}
	return false
}

func (s *scanner) array(depth int) (any, bool) {
	s.i++
	var list []any
	if s.plant {
		list = []any{}
	}
	if depth > MaxDepth {
		return nil, false
	}
	if s.next(']') {
		return list, true
	}
	for {
		v, ok := s.value(depth + 1)
		if !ok {
			return nil, false
		}
		if s.plant {
			list = append(list, v)
		}
		if !s.next(',') {
			return list, s.next(']')
		}
	}
}

func (s *scanner) object(depth int) (any, bool) {
	s.i++
	var members map[string]any
	if s.plant {
		members = map[string]any{}
	}
	if depth > MaxDepth {
		return nil, false
	}
	if s.next('}') {
		return members, true
	}
	last := ""
	for first := true; ; first = false {
		start := s.i
		inside, escaped, ok := s.quoted()
		if !ok || !s.next(':') {
			return nil, false
		}
		if !first && compareNames(last, inside) >= 0 {
			return nil, false
		}
		at := s.i
		if depth == 1+s.above {
			s.within = inside
		}
		v, ok := s.value(depth + 1)
		if !ok {
			return nil, false
		}
		switch {
		case depth == 1+s.above && s.within == "sig":
			s.sig = span{start, s.i}
		case depth == 1+s.above && s.within == "transient":
			s.transient = span{start, s.i}
		case depth == 2+s.above && s.within == "intent" && inside == "args":
			s.args = span{at, s.i}
		case depth == s.above && inside == "payload":
			s.payload = span{at, s.i}
		}
		if s.plant {
			members[s.unquote(start, at-1, escaped)] = v
		}
		last = inside
		if !s.next(',') {
			return members, s.next('}')
		}
	}
}

// string reads a string as a value.
func (s *scanner) string() (any, bool) {
	start := s.i
	_, escaped, ok := s.quoted()
	if !ok || !s.plant {
		return nil, ok
	}
	return s.unquote(start, s.i, escaped), true
}

// unquote returns the value of a quoted string. One without escapes is returned as written.
func (s *scanner) unquote(from, to int, escaped bool) string {
	if escaped {
		return unescape(s.text[from+1 : to-1])
	}
	return s.part(from+1, to-1)
}

// unescape returns the value of a text between quotes that was scanned: nothing else than what
// escape reads follows a backslash.
func unescape(inside string) string {
	var out strings.Builder
	out.Grow(len(inside))
	for {
		before, c, after, more := cutEscape(inside)
		if out.WriteString(before); !more {
			return out.String()
		}
		out.WriteByte(c)
		inside = after
	}
}

// cutEscape cuts such a text around the value of its first escape; more is false where it has none.
func cutEscape(inside string) (before string, c byte, after string, more bool) {
	at := strings.IndexByte(inside, '\\')
	if at < 0 {
		return inside, 0, "", false
	}
	before, c, after = inside[:at], inside[at+1], inside[at+2:]
	switch c {
	case 'b':
		c = '\b'
	case 'f':
		c = '\f'
	case 'n':
		c = '\n'
	case 'r':
		c = '\r'
	case 't':
		c = '\t'
	case 'u':
		c, _ = control(after)
		after = after[len("0000"):]
	}
	return before, c, after, true
}

func (s *scanner) part(from, to int) string {
	if s.apart {
		return strings.Clone(s.text[from:to])
	}
	return s.text[from:to]
}

// quoted reads a string and returns the text between the quotes.
func (s *scanner) quoted() (inside string, escaped, ok bool) {
	if !s.next('"') {
		return "", false, false
	}
	start := s.i
	for {
		s.i += verbatim(s.text[s.i:])
		if s.i == len(s.text) {
			return "", false, false
		}
		switch c := s.text[s.i]; {
		case c == '"':
			s.i++
			return s.text[start : s.i-1], escaped, true
		case c == '\\':
			escaped = true
			if !s.escape() {
				return "", false, false
			}
		case c < 0x20:
			return "", false, false
		default:
			r, size := utf8.DecodeRuneInString(s.text[s.i:])
			if r == utf8.RuneError && size == 1 {
				return "", false, false
			}
			s.i += size
		}
	}
}

// asItIs are the bytes that a JSON string contains unescaped, one
// character each.
var asItIs = func() (of [256]bool) {
	for c := ' '; c < utf8.RuneSelf; c++ {
		of[c] = c != '"' && c != '\\'
	}
	return of
}()

// verbatim counts the leading bytes that are unescaped, eight at a time while none is special: a byte of
// a word is below n if subtracting n from it borrows, and equal to c if their difference is below 1.
func verbatim(text string) int {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	i := 0
	for ; i+8 <= len(text); i += 8 {
		b := text[i : i+8]
		w := uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 | uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56
		quote, slash := w^ones*'"', w^ones*'\\'
		if (w|(w-ones*' ')|(quote-ones)|(slash-ones))&tops != 0 {
			break
		}
	}
	for i < len(text) && asItIs[text[i]] {
		i++
	}
	return i
}

// escape reads one of the escapes that RFC 8785 writes: two characters where
// JSON has a short form, else \u00 and two lower-case digits for a control.
func (s *scanner) escape() bool {
	if len(s.text)-s.i < 2 {
		return false
	}
	switch s.text[s.i+1] {
	case '"', '\\', 'b', 'f', 'n', 'r', 't':
		s.i += 2
		return true
	case 'u':
		if len(s.text)-s.i < 6 {
			return false
		}
		code := s.text[s.i+2 : s.i+6]
		c, ok := control(code)
		if !ok || strings.IndexByte("\b\f\n\r\t", c) >= 0 {
			return false
		}
		s.i += 6
		return true
	}
	return false
}

// control decodes 00xx below 0x20 in lower-case hexadecimal.
func control(code string) (byte, bool) {
	if code[0] != '0' || code[1] != '0' || code[2] != '0' && code[2] != '1' {
		return 0, false
	}
	low := strings.IndexByte("0123456789abcdef", code[3])
	if low < 0 {
		return 0, false
	}
	return (code[2]-'0')<<4 | byte(low), true //nolint:gosec // G115: low is below 16
}

// number reads a number. Integers of up to 15 digits are what ECMAScript prints
// for them; any other has to come back the same from the printer.
func (s *scanner) number() (any, bool) {
	start := s.i
	if !s.numeral() {
		return nil, false
	}
	if !s.plant {
		return nil, true
	}
	return json.Number(s.part(start, s.i)), true
}

func (s *scanner) numeral() bool {
	start := s.i
	s.next('-')
	digits := s.i
	for s.i < len(s.text) && '0' <= s.text[s.i] && s.text[s.i] <= '9' {
		s.i++
	}
	n := s.i - digits
	if n == 0 {
		return false
	}
	if s.i == len(s.text) || strings.IndexByte(",]}", s.text[s.i]) >= 0 {
		if n <= 15 {
			return s.text[digits] != '0' || n == 1 && digits == start
		}
	}
	for s.i < len(s.text) && strings.IndexByte("0123456789.e+-", s.text[s.i]) >= 0 {
		s.i++
	}
	if s.i-start > longestNumber {
		return false
	}
	literal := s.text[start:s.i]
	printed, ok := printNumber(literal)
	return ok && printed == literal
}

// longestNumber bounds the parsed text: ECMAScript prints at most 25 characters,
// as in -1.2345678901234567e-300 or -0.0000012345678901234567.
const longestNumber = 32

// printNumber returns the RFC 8785 form of a number.
func printNumber(literal string) (string, bool) {
	f, err := strconv.ParseFloat(literal, 64)
	if err != nil {
		return "", false
	}
	printed, err := jcs.NumberToJSON(f)
	return printed, err == nil
}
