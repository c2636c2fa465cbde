package intents

import (
	"bytes"
	"cmp"
	"encoding/json"
	"unicode/utf16"
	"unicode/utf8"
)

// name of a member, decoded once for all comparisons with others.
type name struct {
	text  []byte   // as written between quotes
	units []uint16 // its UTF-16 code units; nil: they are the bytes of text
}

// nameOf decodes what the scanner has read.
func nameOf(text []byte) name {
	plain, escaped := true, false
	for _, c := range text {
		escaped = escaped || c == '\\'
		plain = plain && c < utf8.RuneSelf
	}
	if plain && !escaped {
		return name{text: text}
	}
	s := string(text)
	if escaped {
		quoted := append(append([]byte{'"'}, text...), '"')
		_ = json.Unmarshal(quoted, &s) // the scanner has read it already
	}
	return name{text, utf16.Encode([]rune(s))}
}

// compare orders names by UTF-16 code units (RFC 8785 §3.2.3).
func (n name) compare(other name) int {
	if n.units == nil && other.units == nil {
		return bytes.Compare(n.text, other.text)
	}
	for i := range min(n.length(), other.length()) {
		if a, b := n.unit(i), other.unit(i); a != b {
			return cmp.Compare(a, b)
		}
	}
	return cmp.Compare(n.length(), other.length())
}

func (n name) length() int {
	if n.units == nil {
		return len(n.text)
	}
	return len(n.units)
}

func (n name) unit(i int) uint16 {
	if n.units == nil {
		return uint16(n.text[i])
	}
	return n.units[i]
}
