// Package visible shows what a text hides, to people and to models: controls, characters
// without a glyph, marks of direction, and blanks that are no plain space. The console, the
// command line, questions to users of MCP clients and the marks on foreign texts all use it,
// so what one of them shows no other one hides.
//
// A character is written as its code point, <U+202E>; in a JSON document as an escape that
// means the same, \u202e.
package visible

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// blanks are characters that look like a space, without being classed so.
var blanks = []rune{0x115f, 0x1160, 0x2800, 0x3164, 0xffa0, 0xfffc, 0x13441, 0x13442, 0x16fe4, 0x1d159}

// hidden holds Default_Ignorable_Code_Point, which Unicode derives from the first three
// tables, with the format characters that it leaves out; controls; marks of direction;
// white space but the plain one; and blanks.
var hidden = func() map[rune]bool {
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
}()

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

// Hidden reports a character that nobody sees. A tab and a line feed are seen.
func Hidden(r rune) bool { return (r < ' ' || r > '~') && hidden[r] }

// Class is Hidden as a class of a regular expression.
func Class() string {
	var b strings.Builder
	b.WriteByte('[')
	for r := rune(0); r <= 0xe0fff; r++ { // the last one there is
		if !hidden[r] {
			continue
		}
		from := r
		for hidden[r+1] {
			r++
		}
		fmt.Fprintf(&b, `\x{%x}-\x{%x}`, from, r)
	}
	b.WriteByte(']')
	return b.String()
}

// Text is a text that somebody decides on, with every character seen: what is hidden, not
// assigned or of private use is written out, and what is not in keep. The plain space stays.
func Text(s, keep string) string {
	return mapped(s, func(_ int, r rune) bool { return exact(r) || strings.ContainsRune(keep, r) }, codePoint)
}

// Prose is a text to be read. What is hidden is written out, unless writing needs it there:
// see Needed.
func Prose(s string) string {
	return mapped(s, func(i int, r rune) bool { return !Hidden(r) || Needed(s, i) }, codePoint)
}

// JSON is a document that means the same, and in whose strings every character is seen as
// Text has it.
func JSON(doc []byte) []byte {
	return []byte(mapped(string(doc), func(_ int, r rune) bool { return exact(r) || r == '\n' || r == '\t' || r == '\r' }, escape))
}

// ProseJSON is a document that means the same, and in whose strings every character is seen
// as Prose has it.
func ProseJSON(doc []byte) []byte {
	s := string(doc)
	return []byte(mapped(s, func(i int, r rune) bool { return !Hidden(r) || r == '\r' || Needed(s, i) }, escape))
}

// Bare is a text as it looks: without what is hidden, and with a space for each blank.
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

// mapped writes what does not stay in other words, and for a byte of no character the sign
// for that.
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

// Needed reports whether a hidden character does in its place what it is there for, and is
// seen by that: a joiner between two letters of a script that joins or between two emoji, the
// one selector behind a sign, a no-break or ideographic space between two words, the carriage
// return of a line end.
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

// emoji, or what stands behind one and belongs to it.
func emoji(r rune) bool {
	return r == 0xfe0f || r >= 0x1f3fb && r <= 0x1f3ff || unicode.Is(unicode.So, r) && !Hidden(r) && r != utf8.RuneError
}
