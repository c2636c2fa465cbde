package agentic

import (
	"strings"
	"unicode/utf8"
)

// holdBack is how many bytes of a streamed text are withheld at most: forbidden text is recognized
// by its first bytes, and these are fewer.
const holdBack = 256

// leads begin forbidden texts; those of a word begin where one does.
var leads = []struct {
	text string
	word bool
}{
	{"goroutine ", false},
	{"Traceback (most recent call last):", false},
	{`File "`, false},
	{"-----BEGIN ", false},
	{"eyJ", true},
	{"sk-", true},
	{"sk_", true},
	{"pk-", true},
	{"pk_", true},
	{"rk-", true},
	{"rk_", true},
	{"ghp", true},
	{"gho", true},
	{"ghu", true},
	{"ghs", true},
	{"ghr", true},
	{"github_pat", true},
	{"glpat", true},
	{"xoxb", true},
	{"xoxp", true},
	{"xoxa", true},
	{"xoxs", true},
	{"writ_", true},
	{"AKIA", true},
	{"Bearer ", true},
	{"bearer ", true},
}

// heldFrom returns from where a text that goes on may be forbidden, or a part of a character. Before
// shown it is not.
func heldFrom(text string, shown int) int {
	least, from := max(shown, len(text)-holdBack), len(text)
	hold := func(at int, word bool) {
		if at >= least && at < from && !(word && at > 0 && ofWord(text[at-1])) {
			from = at
		}
	}
	for n := 1; n <= min(3, len(text)); n++ {
		if at := len(text) - n; utf8.RuneStart(text[at]) {
			if !utf8.FullRuneInString(text[at:]) {
				hold(at, false)
			}
			break
		}
	}
	for _, lead := range leads {
		for at := least; ; at++ {
			i := strings.Index(text[at:], lead.text)
			if i < 0 {
				break
			}
			at += i
			hold(at, lead.word)
		}
		for n := 1; n < len(lead.text); n++ {
			if strings.HasSuffix(text, lead.text[:n]) {
				hold(len(text)-n, lead.word)
			}
		}
	}
	word := len(text)
	for word > 0 && ofWord(text[word-1]) {
		word--
	}
	for _, code := range compoundCodes() {
		if word < len(text) && strings.HasPrefix(code, text[word:]) {
			hold(word, false)
		}
	}
	line := strings.LastIndexByte(text, '\n') + 1
	if rest := strings.TrimLeft(text[line:], " \t"); len(rest) < len(text)-line && (strings.HasPrefix(rest, "at ") || strings.HasPrefix("at ", rest)) {
		hold(line, false) // a line of a trace
	}
	return from
}

// ofWord reports whether a byte is one of a word, as \b of a regular expression has it.
func ofWord(b byte) bool {
	return b == '_' || '0' <= b && b <= '9' || 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z'
}
