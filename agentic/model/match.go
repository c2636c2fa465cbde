package model

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// word is one token of a task.
type word struct {
	text   string  // as written, without quotes
	lower  string  // in lower case
	stem   string  // what words are compared by
	number float64 // of digits and number words, where isNum
	isNum  bool
	digits bool // written in digits
	date   bool // ISO 8601 date
	quoted bool
	proper bool // capitalised inside a sentence: a name of something
	first  bool // first word of a sentence
	op     bool // a comparison sign
}

// maxWords bounds the work that one task can cause.
const maxWords = 400

// words splits a text into tokens: quoted strings and runs of capitalised words
// are one token each, since they are values and not vocabulary.
func words(text string) []word {
	var out []word
	first, gap := true, ""
	for rest := text; rest != "" && len(out) < maxWords; {
		tok, quoted, tail := nextToken(rest)
		if tok == "" {
			gap += rest[:len(rest)-len(tail)]
			first = first || strings.ContainsAny(gap, ".!?:;\n")
			rest = tail
			continue
		}
		out = join(out, newWord(tok, quoted, first), gap)
		first, gap, rest = false, "", tail
	}
	return out
}

// nextToken returns the token at the start of s, or an empty one when s starts
// with a character that is no part of any token, and what follows.
func nextToken(s string) (tok string, quoted bool, rest string) {
	r, size := utf8.DecodeRuneInString(s)
	if end := closing(r); end != 0 {
		if i := strings.IndexRune(s[size:], end); i > 0 && i < 200 && (r != '\'' || endsWord(s[size+i+1:])) {
			tail := s[size+i:]
			_, n := utf8.DecodeRuneInString(tail)
			return s[size : size+i], true, tail[n:]
		}
	}
	if strings.ContainsRune("<>=≥≤#", r) {
		n := size
		if strings.HasPrefix(s[size:], "=") {
			n++
		}
		return s[:n], false, s[n:]
	}
	n := 0
	for i, c := range s {
		if !inWord(c, s, i) {
			break
		}
		n = i + len(string(c))
	}
	if n == 0 {
		return "", false, s[size:]
	}
	return s[:n], false, s[n:]
}

// inWord reports whether c, at i in s, belongs to the word that began before it:
// letters and digits, and marks that stand between two of them.
func inWord(c rune, s string, i int) bool {
	if unicode.IsLetter(c) || unicode.IsDigit(c) || c == '_' || unicode.IsMark(c) {
		return true
	}
	if c == '-' && i == 0 && len(s) > 1 && s[1] >= '0' && s[1] <= '9' {
		return true
	}
	if i == 0 || !strings.ContainsRune("-.,'’:", c) {
		return false
	}
	prev, _ := utf8.DecodeLastRuneInString(s[:i])
	next, _ := utf8.DecodeRuneInString(s[i+len(string(c)):])
	if c == '-' || c == '\'' || c == '’' {
		return alnum(prev) && alnum(next)
	}
	return unicode.IsDigit(prev) && unicode.IsDigit(next)
}

func alnum(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

func closing(r rune) rune {
	switch r {
	case '"', '\'', '`':
		return r
	case '“':
		return '”'
	case '‘':
		return '’'
	case '«':
		return '»'
	}
	return 0
}

func endsWord(s string) bool {
	r, _ := utf8.DecodeRuneInString(s)
	return !alnum(r)
}

func newWord(tok string, quoted, first bool) word {
	w := word{text: tok, quoted: quoted, first: first}
	if !quoted {
		for _, suffix := range []string{"'s", "’s"} {
			w.text = strings.TrimSuffix(w.text, suffix)
		}
	}
	w.lower = strings.ToLower(w.text)
	w.stem = stem(w.lower)
	if quoted {
		return w
	}
	r, _ := utf8.DecodeRuneInString(tok)
	w.op = strings.ContainsRune("<>=≥≤", r)
	w.date = isDate(tok)
	if f, err := strconv.ParseFloat(strings.ReplaceAll(tok, ",", ""), 64); err == nil && !w.date && (unicode.IsDigit(r) || r == '-') {
		w.number, w.isNum, w.digits = f, true, true
	} else if n, ok := numbers[w.lower]; ok {
		w.number, w.isNum = n, true
	}
	w.proper = unicode.IsUpper(r) && !first && tok != "I" && !w.isNum && !calendar[w.lower]
	return w
}

// join appends w, or lengthens the name that it continues ("New" + "York").
func join(out []word, w word, gap string) []word {
	if n := len(out) - 1; n >= 0 && gap == " " && w.proper && out[n].proper {
		j := newWord(out[n].text+" "+w.text, false, false)
		j.proper = true
		return append(out[:n], j)
	}
	return append(out, w)
}

func isDate(s string) bool {
	if len(s) < 10 || s[4] != '-' || s[7] != '-' {
		return false
	}
	for i, c := range s[:10] {
		if i != 4 && i != 7 && (c < '0' || c > '9') {
			return false
		}
	}
	return len(s) == 10 || s[10] == 'T'
}

// stem cuts the endings of plurals and of regular verb forms. It is light on
// purpose: two words that meet by accident mislead more than two that do not meet.
func stem(w string) string {
	w = strings.ToLower(w)
	switch {
	case len(w) > 4 && strings.HasSuffix(w, "ies"):
		w = w[:len(w)-3] + "y"
	case len(w) > 4 && hasAnySuffix(w, "ses", "xes", "zes", "ches", "shes"):
		w = w[:len(w)-2]
	case len(w) > 2 && strings.HasSuffix(w, "s") && !hasAnySuffix(w, "ss", "us", "is"):
		w = w[:len(w)-1]
	}
	switch {
	case len(w) > 5 && strings.HasSuffix(w, "ing") && strings.ContainsAny(w[:len(w)-3], "aeiouy"):
		w = undouble(w[:len(w)-3])
	case len(w) > 4 && strings.HasSuffix(w, "ed") && !strings.HasSuffix(w, "eed") && strings.ContainsAny(w[:len(w)-2], "aeiouy"):
		w = undouble(w[:len(w)-2])
	}
	if len(w) > 3 {
		w = strings.TrimSuffix(w, "e")
	}
	return w
}

func hasAnySuffix(w string, suffixes ...string) bool {
	for _, s := range suffixes {
		if strings.HasSuffix(w, s) {
			return true
		}
	}
	return false
}

func undouble(w string) string {
	if n := len(w); n > 3 && w[n-1] == w[n-2] && !strings.ContainsRune("aeioulsz", rune(w[n-1])) {
		return w[:n-1]
	}
	return w
}

// asSuperlative reads "strongest" (any adjective) and the irregular ones.
func asSuperlative(w word) (superlative, bool) {
	if w.quoted || w.proper {
		return superlative{}, false
	}
	if s, ok := superlatives[w.lower]; ok {
		return s, true
	}
	base, ok := strings.CutSuffix(w.lower, "est")
	if !ok || len(base) < 3 || notSuperlative[w.lower] {
		return superlative{}, false
	}
	return superlative{base: adjective(base)}, true
}

// asComparative reads "stronger".
func asComparative(w word) (string, bool) {
	base, ok := strings.CutSuffix(w.lower, "er")
	if !ok || len(base) < 3 || w.quoted || w.proper {
		return "", false
	}
	return adjective(base), true
}

func adjective(base string) string {
	if strings.HasSuffix(base, "i") {
		return base[:len(base)-1] + "y"
	}
	return undouble(base)
}

// split cuts an identifier or a title into stems: "outlet_id", "magType".
func split(name string) []string {
	var b strings.Builder
	lower := false
	for _, r := range name {
		if unicode.IsUpper(r) && lower {
			b.WriteByte(' ')
		}
		lower = unicode.IsLower(r)
		if !alnum(r) {
			r = ' '
		}
		b.WriteRune(r)
	}
	var out []string
	for w := range strings.FieldsSeq(strings.ToLower(b.String())) {
		out = append(out, stem(w))
	}
	return out
}

// content reports whether a word says what a task is about. The plural "orders"
// is a noun, where "order" and "ordered" may ask for an arrangement.
func (w word) content() bool {
	return !w.op && !w.isNum && !stop[w.stem] && !stop[w.lower] && !asks[w.stem] && !sorts[w.lower]
}

// knows reports whether a set of stems has one, or a compound that ends in it.
func knows(set map[string]bool, stem string) bool {
	if set[stem] {
		return true
	}
	for s := range set {
		if len(stem) >= 4 && len(s) > len(stem)+2 && strings.HasSuffix(s, stem) {
			return true
		}
	}
	return false
}
