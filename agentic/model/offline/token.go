package offline

import (
	"slices"
	"strings"
)

// token is a word or phrase of a request, by its meaning to a table. It may have several
// meanings.
type token struct {
	word
	says  string     // meaning of a phrase of the language; see phrases
	noun  bool       // the noun for the records
	col   *column    // that it names
	value *condition // it is a value that a column declares, or a column of true and false
}

// phrases are phrases of the language with their meaning. A phrase with an empty meaning is
// skipped.
var phrases = map[string]string{
	"how many": "count", "number of": "count", "count": "count",
	"more than": "over", "over": "over", "above": "over", "at least": "at least",
	"less than": "under", "fewer than": "under", "under": "under", "below": "under", "at most": "at most",
	"highest": "largest", "largest": "largest", "biggest": "largest", "greatest": "largest", "most": "largest", "top": "largest",
	"lowest": "smallest", "smallest": "smallest", "least": "smallest", "fewest": "smallest",
	"highest first": "descending", "largest first": "descending", "descending": "descending", "descending order": "descending",
	"lowest first": "ascending", "smallest first": "ascending", "ascending": "ascending", "ascending order": "ascending",
	"by": "by", "sorted by": "by", "ordered by": "by", "ranked by": "by", "sort": "", "rank": "", "not": "not",
}

// tokens returns the tokens of a request, without words that have no meaning.
func (t *table) tokens(ws []word) (out []token) {
	for i := 0; i < len(ws); {
		k, n := t.token(ws[i:])
		if i += n; k.says != "" || k.noun || k.col != nil || k.value != nil || k.content() && k.key == "" {
			out = append(out, k)
		}
	}
	return out
}

// token returns the token with which the words begin, and its number of words.
func (t *table) token(ws []word) (k token, n int) {
	k = token{word: ws[0], noun: !ws[0].isName && !ws[0].isNumber && t.nouns[ws[0].stem]}
	if k.key != "" {
		return token{word: k.word}, 1
	}
	for _, n := range []int{2, 1} {
		said := ""
		for i := 0; i < n && n <= len(ws); i++ {
			said += " " + ws[i].lower
		}
		if says, ok := phrases[strings.TrimSpace(said)]; ok && !k.noun {
			return token{word: k.word, says: says}, n
		}
	}
	for _, c := range t.columns {
		for _, phrase := range c.phrases {
			if len(phrase) > n && begins(ws, phrase) {
				k.col, n = c, len(phrase)
			}
		}
	}
	for _, c := range t.columns {
		for _, v := range c.values {
			if begins(ws, stems(v)) && len(stems(v)) > n {
				k.col, k.value, n = nil, &condition{Columns: []*column{c}, Value: v}, len(stems(v))
			}
		}
	}
	if k.col != nil && k.col.typ == "boolean" {
		k.col, k.value = nil, &condition{Columns: []*column{k.col}, Value: true}
	}
	if base, est := strings.CutSuffix(k.lower, "est"); n == 0 && est && base != "" {
		if k.col = t.measure(base); k.col != nil {
			k.says = "largest"
		}
	}
	return k, max(n, 1)
}

func begins(ws []word, phrase []string) bool {
	return len(phrase) > 0 && len(phrase) <= len(ws) && !slices.ContainsFunc(ws[:len(phrase)], func(w word) bool { return w.key != "" }) &&
		slices.EqualFunc(ws[:len(phrase)], phrase, func(w word, s string) bool { return w.stem == s })
}
