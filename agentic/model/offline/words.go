package offline

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// word is a piece of a request.
type word struct {
	text   string // as written; of a quote, the quoted text
	lower  string
	stem   string
	key    string // of key=value, the key; text is the value
	number float64

	isNumber bool
	isName   bool // quoted, capitalised inside the request, or with a digit in it: a value, not a description
}

var pieces = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`([\pL_][\pL\pN_]*=)?("[^"]+"|“[^”]+”|\d+(?:\.\d+)?(?:[-_:][\pL\pN]+)*|[\pL\pN_]+(?:[-.'’@:/][\pL\pN_]+)*)`)
})

// maxWords bounds the words read of a request.
const maxWords = 100

// numbers are the number words; "one" is more often a pronoun.
var numbers = map[string]float64{"two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10}

// stop are the words without meaning for the request.
var stop = set(`a an the this that these those it its they them their there he she his her we us our you your i me my
	is are was were be been being am do does did done have has had having can could will would should may
	of in on at to from for with and as into which what how all any every each both
	please list show give tell find get print return call named called`)

func set(list string) map[string]bool {
	out := map[string]bool{}
	for w := range strings.FieldsSeq(list) {
		out[w] = true
	}
	return out
}

// words splits a request. Capitalised words in a row are one name.
func words(request string) []word {
	var out []word
	end := -1 // of the word before, if it is a name that the next one may continue
	for _, at := range pieces().FindAllStringSubmatchIndex(request, maxWords+1) {
		w := word{text: request[at[4]:at[5]]}
		if at[2] >= 0 {
			w.key = request[at[2] : at[3]-1]
		}
		unquoted := strings.Trim(w.text, `"“”`)
		first, _ := utf8.DecodeRuneInString(w.text)
		w.number, w.isNumber = numbers[strings.ToLower(w.text)]
		if number, err := strconv.ParseFloat(w.text, 64); err == nil && unicode.IsDigit(first) {
			w.number, w.isNumber = number, true
		}
		inside := len(out) > 0
		w.isName = !w.isNumber && (unquoted != w.text || unicode.IsUpper(first) && inside || strings.ContainsFunc(w.text, unicode.IsDigit))
		w.text = unquoted
		capital := unicode.IsUpper(first) && inside && w.key == ""
		if capital && end >= 0 && request[end:at[0]] == " " {
			w.text = out[len(out)-1].text + " " + w.text
			out = out[:len(out)-1]
		}
		if end = -1; capital {
			end = at[1]
		}
		w.lower, w.stem = strings.ToLower(w.text), stem(w.text)
		out = append(out, w)
	}
	return out
}

// content reports whether a word must be understood.
func (w word) content() bool { return w.isName || w.isNumber || !stop[w.lower] }

// stem returns a word without case and plural.
func stem(s string) string {
	s = strings.ToLower(s)
	ends := func(with ...string) bool {
		return slices.ContainsFunc(with, func(e string) bool { return strings.HasSuffix(s, e) })
	}
	switch {
	case len(s) > 4 && ends("ies"):
		return s[:len(s)-3] + "y"
	case len(s) > 4 && ends("sses", "xes", "ches", "shes"):
		return s[:len(s)-2]
	case len(s) > 2 && ends("s") && !ends("ss", "us", "is"):
		return s[:len(s)-1]
	}
	return s
}

// parts returns the words of a name or of a description, in lower case.
func parts(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

func stems(text string) []string {
	out := parts(text)
	for i, w := range out {
		out[i] = stem(w)
	}
	return out
}

// vocabulary returns the meaningful words of texts.
func vocabulary(texts ...string) map[string]bool {
	out := map[string]bool{}
	for _, s := range stems(strings.Join(texts, " ")) {
		if !stop[s] {
			out[s] = true
		}
	}
	return out
}

// named reports whether a text contains the name of a skill as such: as written, or with spaces
// between its words.
func named(skill, text string) bool {
	spread := func(s string) string { return " " + strings.Join(parts(s), " ") + " " }
	return len(parts(skill)) > 0 && strings.Contains(spread(text), spread(skill))
}

func spaced(name string) string { return strings.ReplaceAll(name, "_", " ") }

func quoted(list []string) string { return `"` + strings.Join(list, `", "`) + `"` }
