package intents

import (
	"slices"
	"strings"
	"unicode/utf16"
)

// compareNames orders two names of members, as written between quotes and scanned
// before, by their UTF-16 code units (RFC 8785 §3.2.3).
func compareNames(a, b string) int {
	if plain(a) && plain(b) {
		return strings.Compare(a, b)
	}
	return slices.Compare(codeUnits(a), codeUnits(b))
}

// plain reports that the bytes of a name are its code units.
func plain(name string) bool {
	return verbatim(name) == len(name)
}

func codeUnits(name string) []uint16 {
	if strings.IndexByte(name, '\\') >= 0 {
		name = unescape(name)
	}
	return utf16.Encode([]rune(name))
}
