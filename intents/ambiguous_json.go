package intents

import (
	"bytes"
	"encoding/json"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// MaxAnswerDepth bounds the nesting of an executor's answer: deeper than any
// reader's stack is safe with, and than any data needs.
const MaxAnswerDepth = 100

// Unambiguous refuses a JSON text that two readers may read as different values:
// a duplicate member, bytes that are not UTF-8, a lone
// surrogate, or nesting over MaxAnswerDepth. Unlike Canonical it accepts every
// number. The error is a *Refusal that quotes no value of the text.
func Unambiguous(raw []byte) error {
	if _, ok := scan(raw, false); ok {
		return nil // canonical: members ascend
	}
	switch {
	case Nesting(raw) > MaxAnswerDepth:
		return Refuse(PayloadTooLarge, "", "nested deeper than "+strconv.Itoa(MaxAnswerDepth))
	case !utf8.Valid(raw):
		return Refuse(SchemaInvalid, "", "not UTF-8")
	case !json.Valid(raw):
		return Refuse(SchemaInvalid, "", "not JSON")
	case loneSurrogate(raw):
		return Refuse(SchemaInvalid, "", "a surrogate stands alone")
	}
	d := diagnosis{dec: json.NewDecoder(bytes.NewReader(raw)), anyNumber: true}
	d.dec.UseNumber()
	if d.value() {
		return Refuse(SchemaInvalid, d.pointer(), d.reason)
	}
	return nil
}

// loneSurrogate reports whether a valid JSON text escapes half of a character.
func loneSurrogate(raw []byte) bool {
	const escape = len(`\u0000`)
	var high bool // the escape before was the first half
	for i := 0; i < len(raw); {
		if raw[i] != '\\' {
			if high {
				return true
			}
			i++
			continue
		}
		if raw[i+1] != 'u' {
			if high {
				return true
			}
			i += 2
			continue
		}
		n, err := strconv.ParseUint(string(raw[i+2:i+escape]), 16, 16)
		if err != nil {
			return true
		}
		const low = 0xDC00
		second := utf16.IsSurrogate(rune(n)) && n >= low
		if second != high {
			return true
		}
		high = utf16.IsSurrogate(rune(n)) && n < low
		i += escape
	}
	return high
}
