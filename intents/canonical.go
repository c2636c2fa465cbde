package intents

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/gowebpki/jcs"

	"aob.dev/writ/schemas"
)

// Canonical returns the RFC 8785 bytes of a JSON text and refuses what is not
// strict I-JSON (RFC 7493): bytes that are not UTF-8, lone surrogates, duplicate
// member names, nesting over MaxDepth, and numbers whose value RFC 8785 would
// change, such as 9007199254740993, -0 and 1e-400; 1.0 is 1. The error is a
// *Refusal that quotes nothing of the text.
//
// Bytes that are already canonical are returned without a copy.
func Canonical(raw []byte) ([]byte, error) {
	c, err := canonicalize(raw, false)
	return c.bytes, err
}

// Tree returns the value of a JSON text that already is its RFC 8785 bytes, as encoding/json
// reads it with UseNumber; false for any other text. Its strings are parts of the text, unless
// they had escapes.
func Tree(text string) (any, bool) {
	c, ok := scanText(text, true)
	return c.tree, ok
}

// canonical is a canonical JSON text with its value tree and some places in it.
type canonical struct {
	bytes          []byte
	tree           any  // as encoding/json reads it with UseNumber; its strings are parts of one copy
	sig, transient span // the root's members of these names
	args           span // the value of intent.args of the envelope
	payload        span // of a dispatch: the value of its member of this name, which is the envelope
}

// span is a range of bytes. Only the root begins at 0, so an empty span means that there is none.
type span struct{ from, to int }

// canonicalize takes bytes that are canonical as they are. Everything else is
// transformed by jcs, and the output is scanned: all output has passed
// the one scanner, so nothing rests on two decoders agreeing.
func canonicalize(raw []byte, plant bool) (canonical, error) {
	if c, ok := scan(raw, plant); ok {
		return c, nil
	}
	if Nesting(raw) > MaxDepth {
		return canonical{}, Refuse(PayloadTooLarge, "", "nested deeper than 32")
	}
	out, err := jcs.Transform(raw)
	if err != nil || !exactNumbers(raw) {
		pointer, reason := diagnose(raw)
		return canonical{}, Refuse(SchemaInvalid, pointer, reason)
	}
	c, ok := scan(out, plant)
	if !ok {
		return canonical{}, Refuse(SchemaInvalid, "", "not strict I-JSON")
	}
	return c, nil
}

// without removes the members sig and transient from a canonical object: what is left is canonical.
func (c canonical) without() (payload, sig []byte) {
	sig = c.bytes[c.sig.from+len(`"sig":`) : c.sig.to]
	payload = c.bytes
	for _, member := range []span{c.transient, c.sig} { // the last one first
		start, end := member.from, member.to
		switch {
		case end == 0:
			continue
		case payload[end] == ',':
			end++
		case payload[start-1] == ',':
			start--
		}
		payload = slices.Concat(payload[:start], payload[end:])
	}
	return payload, sig
}

// Nesting is how deep the brackets of a text go, strings left out.
func Nesting(raw []byte) int {
	depth, deepest := 0, 0
	skipStrings(raw, func(i int) int {
		switch raw[i] {
		case '{', '[':
			depth++
			deepest = max(deepest, depth)
		case '}', ']':
			depth--
		}
		return i + 1
	})
	return deepest
}

// exactNumbers reports whether every number of a JSON text retains its value in RFC
// 8785. The text is JSON, so outside strings a digit or a minus begins a number.
func exactNumbers(raw []byte) bool {
	exact := true
	skipStrings(raw, func(i int) int {
		if raw[i] != '-' && (raw[i] < '0' || raw[i] > '9') {
			return i + 1
		}
		end := i + 1
		for end < len(raw) && strings.IndexByte("0123456789.eE+-", raw[end]) >= 0 {
			end++
		}
		exact = exact && exactNumber(string(raw[i:end]))
		return end
	})
	return exact
}

// skipStrings calls token at every byte outside strings; it returns where to continue.
func skipStrings(raw []byte, token func(i int) int) {
	for i := 0; i < len(raw); {
		if raw[i] != '"' {
			i = token(i)
			continue
		}
		for i++; i < len(raw) && raw[i] != '"'; i++ {
			if raw[i] == '\\' {
				i++
			}
		}
		i++
	}
}

// exactNumber compares a number with its RFC 8785 form, as decimals.
func exactNumber(literal string) bool {
	printed, ok := printNumber(literal)
	if !ok {
		return false
	}
	digits1, exponent1 := decimal(literal)
	digits2, exponent2 := decimal(printed)
	negativeZero := digits1 == "" && literal[0] == '-'
	return digits1 == digits2 && exponent1 == exponent2 && !negativeZero
}

// decimal normalizes a number to digits without zeros at either end, times a
// power of ten; zero has no digits. The sign is left out: printing retains it.
func decimal(literal string) (digits string, exponent int) {
	mantissa, e, scientific := strings.Cut(strings.ToLower(strings.TrimPrefix(literal, "-")), "e")
	if scientific {
		exponent, _ = strconv.Atoi(e) // out of range: zero, or no double is there and the digits differ
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits = strings.TrimLeft(whole+fraction, "0")
	exponent -= len(fraction)
	trimmed := strings.TrimRight(digits, "0")
	exponent += len(digits) - len(trimmed)
	if trimmed == "" {
		exponent = 0
	}
	return trimmed, exponent
}

// diagnose returns why a text was refused, and where, if it can.
func diagnose(raw []byte) (pointer, reason string) {
	switch {
	case !utf8.Valid(raw):
		return "", "not UTF-8"
	case !json.Valid(raw):
		return "", "not JSON"
	}
	d := diagnosis{dec: json.NewDecoder(bytes.NewReader(raw))}
	d.dec.UseNumber()
	if d.value() {
		return d.pointer(), d.reason
	}
	return "", "not strict I-JSON: a surrogate stands alone"
}

// diagnosis walks valid JSON for the first duplicate name or inexact number.
type diagnosis struct {
	dec       *json.Decoder
	anyNumber bool     // numbers are not looked at
	path      []string // to where it is; joined once something is found
	reason    string
}

func (d *diagnosis) found(reason string) bool {
	d.reason = reason
	return true
}

func (d *diagnosis) pointer() string {
	var b strings.Builder
	for _, token := range d.path {
		b.WriteByte('/')
		b.WriteString(schemas.Escape(token))
	}
	return b.String()
}

// below looks at what the next token of the path names. What is found stays the
// end of the path.
func (d *diagnosis) below(token string, look func() bool) bool {
	d.path = append(d.path, token)
	if look() {
		return true
	}
	d.path = d.path[:len(d.path)-1]
	return false
}

func (d *diagnosis) value() bool {
	token, err := d.dec.Token()
	if err != nil {
		return false
	}
	switch token {
	case json.Delim('{'):
		return d.object()
	case json.Delim('['):
		for i := 0; d.dec.More(); i++ {
			if d.below(strconv.Itoa(i), d.value) {
				return true
			}
		}
		_, _ = d.dec.Token() // the bracket: the text is valid
	}
	if n, ok := token.(json.Number); ok && !d.anyNumber && !exactNumber(string(n)) {
		return d.found("RFC 8785 would change this number: it is no IEEE 754 double, or -0")
	}
	return false
}

func (d *diagnosis) object() bool {
	seen := map[string]bool{}
	for d.dec.More() {
		token, err := d.dec.Token()
		name, ok := token.(string)
		if err != nil || !ok {
			return false
		}
		twice := seen[name]
		seen[name] = true
		if d.below(name, func() bool { return twice && d.found("member stands twice") || d.value() }) {
			return true
		}
	}
	_, _ = d.dec.Token()
	return false
}
