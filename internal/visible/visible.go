// Package visible shows hidden characters of a text to people and models: controls, characters
// without a glyph, marks of direction, and blanks that are no plain space. The console, the
// command line, questions to users of MCP clients and the marks on foreign texts all use it,
// so they all show the same characters.
//
// A character is written as its code point, <U+202E>; in a JSON document as an escape that
// means the same, \u202e.
package visible

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// blanks are characters that look like a space, without being classed so.
var blanks = []rune{0x115f, 0x1160, 0x2800, 0x3164, 0xffa0, 0xfffc, 0x13441, 0x13442, 0x16fe4, 0x1d159}

// hidden contains Default_Ignorable_Code_Point, which Unicode derives from the first three
// tables, with the format characters that it omits; controls; marks of direction;
// white space but the plain one; and blanks.
var hidden = sync.OnceValue(func() map[rune]bool {
	out := map[rune]bool{}
	for _, t := range []*unicode.RangeTable{
		unicode.Other_Default_Ignorable_Code_Point, unicode.Cf, unicode.Variation_Selector,
		unicode.Cc, unicode.Bidi_Control, unicode.White_Space,
	} {
		for r := range runes(t) {
			out[r] = true
		}
	}
	for r := range runes(unicode.Prepended_Concatenation_Mark) { // they have a glyph
		delete(out, r)
	}
	for _, r := range " \t\n" {
		delete(out, r)
	}
	for _, r := range blanks {
		out[r] = true
	}
	return out
})

// runes of a table.
func runes(t *unicode.RangeTable) func(func(rune) bool) {
	return func(yield func(rune) bool) {
		for _, x := range t.R16 {
			for r := rune(x.Lo); r <= rune(x.Hi); r += rune(x.Stride) {
				if !yield(r) {
					return
				}
			}
		}
		for _, x := range t.R32 {
			for r := rune(x.Lo); r <= rune(x.Hi); r += rune(x.Stride) { //nolint:gosec // G115: code points fit
				if !yield(r) {
					return
				}
			}
		}
	}
}

// Hidden reports an invisible character. A tab and a line feed count as visible.
func Hidden(r rune) bool { return (r < ' ' || r > '~') && hidden()[r] }

// Class is Hidden as a class of a regular expression.
func Class() string {
	var b strings.Builder
	b.WriteByte('[')
	all := slices.Sorted(maps.Keys(hidden()))
	for i := 0; i < len(all); i++ {
		from := all[i]
		for i+1 < len(all) && all[i+1] == all[i]+1 {
			i++
		}
		fmt.Fprintf(&b, `\x{%x}-\x{%x}`, from, all[i])
	}
	b.WriteByte(']')
	return b.String()
}

// Text is a text for a decision, with every character visible: characters that are hidden,
// unassigned, of private use or disguised as others are written out, unless they are in keep. The
// plain space stays.
func Text(s, keep string) string {
	hides := disguised(s, false)
	return mapped(s, func(i int, r rune) bool { return exact(r) && !hides[i] || strings.ContainsRune(keep, r) }, codePoint)
}

// Prose is a text to be read. Hidden characters are written out, unless the script needs them
// there: see Needed.
func Prose(s string) string {
	return mapped(s, func(i int, r rune) bool { return !Hidden(r) || Needed(s, i) }, codePoint)
}

// JSON is an equivalent document whose strings show every character as Text does.
func JSON(doc []byte) []byte {
	hides := disguised(string(doc), true)
	return []byte(mapped(string(doc), func(i int, r rune) bool { return exact(r) && !hides[i] || r == '\n' || r == '\t' || r == '\r' }, escape))
}

// ProseJSON is an equivalent document whose strings show every character as Prose does.
func ProseJSON(doc []byte) []byte {
	s := string(doc)
	return []byte(mapped(s, func(i int, r rune) bool { return !Hidden(r) || r == '\r' || Needed(s, i) }, escape))
}

// Bare is a text as it looks: without hidden characters, and with a space for each blank.
func Bare(s string) string {
	return mapped(s, func(_ int, r rune) bool { return !Hidden(r) }, func(r rune) string {
		if unicode.Is(unicode.White_Space, r) || slices.Contains(blanks, r) {
			return " "
		}
		return ""
	})
}

func exact(r rune) bool { return unicode.IsPrint(r) && !Hidden(r) }

func codePoint(r rune) string { return fmt.Sprintf("<%U>", r) }

func escape(r rune) (out string) {
	for _, unit := range utf16.Encode([]rune{r}) {
		out += fmt.Sprintf(`\u%04x`, unit)
	}
	return out
}

// mapped replaces characters that do not stay by word, and an invalid byte by the replacement
// character.
func mapped(s string, stays func(int, rune) bool, word func(rune) string) string {
	s = strings.ToValidUTF8(s, string(utf8.RuneError))
	var b strings.Builder
	last := 0
	for i, r := range s {
		if stays(i, r) {
			continue
		}
		b.WriteString(s[last:i] + word(r))
		last = i + utf8.RuneLen(r)
	}
	if last == 0 {
		return s
	}
	return b.String() + s[last:]
}

// joining are scripts in which a joiner, or its opposite, changes how the letters beside it
// look.
var joining = []*unicode.RangeTable{
	unicode.Arabic, unicode.Syriac, unicode.Nko, unicode.Mongolian, unicode.Devanagari, unicode.Bengali, unicode.Gurmukhi, unicode.Gujarati, unicode.Oriya,
	unicode.Tamil, unicode.Telugu, unicode.Kannada, unicode.Malayalam, unicode.Sinhala, unicode.Khmer, unicode.Myanmar, unicode.Tibetan,
}

// Needed reports whether a hidden character has its intended, visible effect in its place: a joiner
// between two letters of a script that joins or between two emoji, the one selector behind a sign,
// a no-break or ideographic space between two words, the carriage return of a line end.
func Needed(s string, at int) bool {
	r, size := utf8.DecodeRuneInString(s[at:])
	before, _ := utf8.DecodeLastRuneInString(s[:at])
	after, _ := utf8.DecodeRuneInString(s[at+size:])
	switch r {
	case '\r':
		return after == '\n'
	case 0xa0, 0x202f, 0x3000:
		return word(before) && word(after)
	case 0xfe0e, 0xfe0f:
		return before != utf8.RuneError && unicode.In(before, unicode.So, unicode.Sm)
	case 0x200c, 0x200d:
		joins := unicode.In(before, joining...) && unicode.In(after, joining...) && unicode.In(before, unicode.L, unicode.M) && unicode.In(after, unicode.L, unicode.M)
		return joins || r == 0x200d && emoji(before) && emoji(after)
	default:
		return false
	}
}

func word(r rune) bool { return exact(r) && !strings.ContainsRune(" \"\uFFFD", r) }

// emoji reports an emoji, or a character that follows one and belongs to it.
func emoji(r rune) bool {
	return r == 0xfe0f || r >= 0x1f3fb && r <= 0x1f3ff || unicode.Is(unicode.So, r) && !Hidden(r) && r != utf8.RuneError
}

// cutMark marks a truncated text.
const cutMark = "…"

// Cut is a text of at most n bytes, for models, people and logs. A longer one ends between
// characters, with "…".
func Cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	n = max(0, n-len(cutMark))
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + cutMark
}

// IsCut reports whether Cut may have shortened a text to n bytes.
func IsCut(s string, n int) bool {
	return len(s) <= n && len(s) > n-len(cutMark)-utf8.UTFMax && strings.HasSuffix(s, cutMark)
}

// Line is a text that others wrote in one line of at most n bytes, with control characters
// escaped, so that it can neither write to a terminal nor forge a line of a log.
func Line(s string, n int) string {
	var b strings.Builder
	for _, r := range strings.ToValidUTF8(s, "\uFFFD") {
		part := string(r)
		switch {
		case r == '\n' || r == '\t':
			part = " "
		case !strconv.IsPrint(r):
			q := strconv.QuoteRuneToASCII(r)
			part = q[1 : len(q)-1]
		}
		if b.Len()+len(part) > n-len(cutMark) {
			return b.String() + cutMark
		}
		b.WriteString(part)
	}
	return b.String()
}
