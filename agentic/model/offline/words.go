package offline

import (
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// word is a piece of a request.
type word struct {
	text   string // as written; of a quote, what is quoted
	lower  string
	stem   string
	key    string // of key=value, the key; text is the value
	begin  int    // where it stands in the request
	end    int
	number float64

	isNumber bool
	isName   bool // quoted, capitalised inside the request, or with a digit in it: a value, not a description
}

var pieces = regexp.MustCompile(`([\pL_][\pL\pN_]*=)?("[^"]+"|“[^”]+”|\d+(?:\.\d+)?(?:[-_:][\pL\pN]+)*|[\pL\pN_]+(?:[-.'’@:/][\pL\pN_]+)*)`)

// maxWords bounds what is read of a request.
const maxWords = 100

// numbers are the number words; "one" is a pronoun more often.
var numbers = map[string]float64{
	"two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10, "eleven": 11, "twelve": 12, "twenty": 20,
}

// stop are the words that say nothing about what is asked.
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
	joins := false // the word before is a name that the next one may go on with
	for _, at := range pieces.FindAllStringSubmatchIndex(request, maxWords+1) {
		w := word{text: request[at[4]:at[5]], begin: at[0], end: at[1]}
		if at[2] >= 0 {
			w.key = request[at[2] : at[3]-1]
		}
		unquoted := strings.Trim(w.text, `"“”`)
		first, _ := utf8.DecodeRuneInString(w.text)
		w.number, w.isNumber = numbers[strings.ToLower(w.text)]
		if number, err := strconv.ParseFloat(w.text, 64); err == nil && unicode.IsDigit(first) {
			w.number, w.isNumber = number, true
		}
		w.isName = !w.isNumber && (unquoted != w.text || unicode.IsUpper(first) && len(out) > 0 || strings.ContainsFunc(w.text, unicode.IsDigit))
		n := len(out)
		if capital := unicode.IsUpper(first) && n > 0; capital && joins && request[out[n-1].begin:at[0]] == out[n-1].text+" " {
			w.text, w.begin = out[n-1].text+" "+unquoted, out[n-1].begin
			out = out[:n-1]
		} else {
			w.text, joins = unquoted, capital && w.key == ""
		}
		w.lower, w.stem = strings.ToLower(w.text), stem(w.text)
		out = append(out, w)
	}
	return out
}

// content reports whether a word says something that must be understood.
func (w word) content() bool { return w.isName || w.isNumber || !stop[w.lower] }

// stem is a word without case and plural.
func stem(s string) string {
	s = strings.ToLower(s)
	switch {
	case len(s) > 4 && strings.HasSuffix(s, "ies"):
		return s[:len(s)-3] + "y"
	case len(s) > 4 && (strings.HasSuffix(s, "sses") || strings.HasSuffix(s, "xes") || strings.HasSuffix(s, "ches") || strings.HasSuffix(s, "shes")):
		return s[:len(s)-2]
	case len(s) > 2 && strings.HasSuffix(s, "s") && !strings.HasSuffix(s, "ss") && !strings.HasSuffix(s, "us") && !strings.HasSuffix(s, "is"):
		return s[:len(s)-1]
	}
	return s
}

// parts are the words of a name or of a description, in lower case.
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

// vocabulary are the words of texts that say something.
func vocabulary(texts ...string) map[string]bool {
	out := map[string]bool{}
	for _, s := range stems(strings.Join(texts, " ")) {
		if !stop[s] {
			out[s] = true
		}
	}
	return out
}

// named reports whether a text holds the name of a skill as such: as it is
// written, or with spaces between its words.
func named(skill, text string) bool {
	spread := func(s string) string { return " " + strings.Join(parts(s), " ") + " " }
	return len(parts(skill)) > 0 && strings.Contains(spread(text), spread(skill))
}

// sentence ends with a full stop.
func sentence(s string) string {
	s = strings.TrimSpace(s)
	if s == "" || strings.ContainsAny(s[len(s)-1:], ".!?") {
		return s
	}
	return s + "."
}

func quoted(list []string) string { return `"` + strings.Join(list, `", "`) + `"` }
