package intents

import (
	"bytes"
	"encoding/json"
	"slices"
	"unicode/utf16"
)

// compareNames orders two names of members, as written between quotes and scanned
// before, by their UTF-16 code units (RFC 8785 §3.2.3).
func compareNames(a, b []byte) int {
	if plain(a) && plain(b) {
		return bytes.Compare(a, b)
	}
	return slices.Compare(codeUnits(a), codeUnits(b))
}

// plain reports that the bytes of a name are its code units.
func plain(name []byte) bool {
	return verbatim(name) == len(name)
}

func codeUnits(name []byte) []uint16 {
	text := string(name)
	if bytes.IndexByte(name, '\\') >= 0 {
		_ = json.Unmarshal([]byte(`"`+text+`"`), &text) // the scanner has read it
	}
	return utf16.Encode([]rune(text))
}
