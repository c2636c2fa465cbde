package skills

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"unicode"
)

// Weights of the ranking, which is BM25 without the length of documents: descriptions
// are short, and a long one should not rank lower for it.
const (
	nameWeight = 3.0
	saturation = 1.2 // how soon further occurrences of a word stop counting
)

// stem is how many letters of a word count: "strong" matches "strongest".
const stem = 6

// rank sorts skills by the words that they share with the query, best first;
// those that share none come last, from sharing on. Equal ones keep their order.
func rank(skills []Skill, query string) (ranked []Skill, sharing int) {
	wanted := map[string]bool{}
	for _, w := range words(query) {
		wanted[w] = true
	}
	counts := make([]map[string]float64, len(skills))
	carriers := map[string]float64{} // in how many skills a word stands
	for i, s := range skills {
		counts[i] = map[string]float64{}
		for _, w := range words(s.Name) {
			counts[i][w] += nameWeight
		}
		for _, w := range words(s.Description) {
			counts[i][w]++
		}
		for w := range counts[i] {
			carriers[w]++
		}
	}
	type scored struct {
		skill Skill
		score float64
	}
	var found []scored
	for i, s := range skills {
		score := 0.0
		for w := range wanted {
			if n := counts[i][w]; n > 0 {
				rarity := math.Log(1 + (float64(len(skills))-carriers[w]+0.5)/(carriers[w]+0.5))
				score += rarity * n * (saturation + 1) / (n + saturation)
			}
		}
		if found = append(found, scored{s, score}); score > 0 {
			sharing++
		}
	}
	slices.SortStableFunc(found, func(a, b scored) int { return cmp.Compare(b.score, a.score) })
	out := make([]Skill, len(found))
	for i, f := range found {
		out[i] = f.skill
	}
	return out, sharing
}

// words of a text: lower case, camelCase and snake_case split, without stop words and single
// letters, in the singular, stemmed.
func words(text string) []string {
	var out []string
	for _, field := range strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		for _, part := range humps(field) {
			low := strings.ToLower(part)
			one := singular(low)
			if w := []rune(one); len(w) > 1 && !common[low] && !common[one] {
				out = append(out, string(w[:min(len(w), stem)]))
			}
		}
	}
	return out
}

// singular removes the ending of an English plural, so that "orders" matches "order"
// and "cities" matches "city".
func singular(w string) string {
	switch {
	case len(w) < 4 || strings.HasSuffix(w, "ss") || strings.HasSuffix(w, "us") || strings.HasSuffix(w, "is"):
		return w
	case strings.HasSuffix(w, "ies"):
		return strings.TrimSuffix(w, "ies") + "y"
	case strings.HasSuffix(w, "sses"), strings.HasSuffix(w, "shes"), strings.HasSuffix(w, "ches"), strings.HasSuffix(w, "xes"):
		return strings.TrimSuffix(w, "es")
	default:
		return strings.TrimSuffix(w, "s")
	}
}

// humps splits a word where a lower-case letter meets an upper-case one.
func humps(word string) []string {
	var out []string
	start, before := 0, rune(0)
	for i, r := range word {
		if unicode.IsUpper(r) && unicode.IsLower(before) {
			out = append(out, word[start:i])
			start = i
		}
		before = r
	}
	return append(out, word[start:])
}

// common words do not describe a task.
var common = func() map[string]bool {
	set := map[string]bool{}
	for w := range strings.FieldsSeq(`a about all also an and any are as at be been but by can could did do does each for from
		get give given gives had has have he her him his how i if in input into is it its let like list make many may me more
		most must my no not of on one only or other our out output please return returned returns s same she should show so some
		such take takes tell than that the their them then there these they this those to too us use used uses using very was
		we were what when where which while who whom whose why will with would you your`) {
		set[w] = true
	}
	return set
}()
