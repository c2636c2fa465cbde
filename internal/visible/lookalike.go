package visible

import (
	"slices"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// lookAlikes are the scripts whose letters can pass for Latin ones.
var lookAlikes = []string{"Armenian", "Cherokee", "Coptic", "Cyrillic", "Greek", "Lisu"}

// lookAlike is the script of a letter that can pass for a Latin one; empty: it cannot.
func lookAlike(r rune) string {
	for _, name := range lookAlikes {
		if unicode.Is(unicode.Scripts[name], r) {
			return name
		}
	}
	return ""
}

// disguised returns the places of letters that can pass for others: those of lookAlikes in a word
// that has Latin letters too, and variants of Latin letters, such as mathematical and fullwidth ones
// (UTS 39, section 5.1, with a shorter list of scripts). In a JSON document an escape is no part of a word.
func disguised(s string, inJSON bool) map[int]bool {
	if ascii(s) {
		return nil
	}
	out := map[int]bool{}
	var foreign []int // in this word
	latin := false
	end := func() {
		for _, at := range foreign {
			out[at] = out[at] || latin
		}
		foreign, latin = foreign[:0], false
	}
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case inJSON && r == '\\':
			end()
			if size = 2; i+1 < len(s) && s[i+1] == 'u' {
				size = 6
			}
		case variant(r):
			out[i], latin = true, true
		case lookAlike(r) != "":
			foreign = append(foreign, i)
		case unicode.Is(unicode.Latin, r):
			latin = true
		case !unicode.In(r, unicode.L, unicode.M, unicode.N):
			end()
		}
		i += size
	}
	end()
	return out
}

// variant reports another form of an ASCII letter. Ordinal indicators are none: people write them.
func variant(r rune) bool {
	if r < 0x250 || !unicode.IsLetter(r) {
		return false
	}
	plain := norm.NFKC.String(string(r))
	return len(plain) == 1 && plain[0] >= 'A' // of a letter, NFKC gives only letters
}

func ascii(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// Scripts names the scripts of a text's letters that can pass for Latin ones, for a note beside it.
func Scripts(s string) (out []string) {
	for _, r := range s {
		if name := lookAlike(r); name != "" && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}
