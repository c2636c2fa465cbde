package model

import (
	"fmt"
	"strings"
)

// approach is one way to do the task, and how well it explains the task's words.
type approach struct {
	ws      []word
	sources []*source
	reading *reading // of the source that answers
	used    []bool   // words with a part in some query
	filled  []bool   // words handed to a skill as input
	drafts  []draft
	score   int
}

// about is one where the answer consists of the records that a noun names.
func (a *approach) about(head string) int {
	if knows(a.reading.src.entity, head) {
		return 1
	}
	return 0
}

// speaks reports whether a declaration of the approach's skills has the word.
func (a *approach) speaks(w word) bool {
	stems := []string{w.stem}
	if base, ok := asComparative(w); ok {
		stems = append(stems, stem(base))
	}
	for _, src := range a.sources {
		for _, s := range stems {
			if !w.quoted && !w.proper && (knows(src.about, s) || src.entity[s]) {
				return true
			}
		}
	}
	return false
}

// unused are the content words that the approach has no use for: no field, no
// value, nothing that its skills speak of.
func (a *approach) unused() []string {
	var out []string
	for i, w := range a.ws {
		if a.used[i] || a.filled[i] || a.speaks(w) {
			continue
		}
		if _, ok := asSuperlative(w); ok && len(a.sources) > 1 {
			continue
		}
		if w.quoted || w.proper || w.content() || w.digits {
			out = append(out, w.text)
		}
	}
	return out
}

// covered counts the content words that the approach explains. What is merely
// passed on to a skill is not understood by that.
func (a *approach) covered() int {
	n := 0
	for i, w := range a.ws {
		if w.content() && !w.quoted && !w.proper && (a.speaks(w) || a.used[i] && !a.filled[i]) {
			n++
		}
	}
	return n
}

// objection says why the approach would not answer the task, empty when it
// does. It is strict: half of a question understood gives a wrong answer, which
// is worse than none.
func (a *approach) objection() string {
	r, name := a.reading, a.reading.src.skill.Name
	unused := a.unused()
	switch value := a.unusedValue(); {
	case len(r.missing) > 0:
		return fmt.Sprintf("%s does not say %q.", name, r.missing[0])
	case r.unresolved && len(a.sources) == 1:
		return fmt.Sprintf("%s has nothing that %q could be measured by.", name, a.ws[r.superAt].text)
	case value != "":
		return fmt.Sprintf("No available skill knows what to do with %q.", value)
	case a.verb() != "":
		return fmt.Sprintf("No available skill can %q.", a.verb())
	case a.covered() == 0:
		return "No available skill has to do with this."
	case len(unused)*2 > a.covered():
		return fmt.Sprintf("No available skill covers %s.", quotedList(unused))
	}
	return ""
}

// unusedValue returns a name, quote or number that has no part in any query:
// leaving it out would answer another, wider question.
func (a *approach) unusedValue() string {
	for i, w := range a.ws {
		if (w.quoted || w.proper || w.digits || w.date) && !a.used[i] && !a.filled[i] {
			return w.text
		}
	}
	return ""
}

// verb returns the word by which the task begins when it asks for something to
// be done ("Book me a flight") that no declaration speaks of. Words that ask
// for data are no such verbs.
func (a *approach) verb() string {
	for i, w := range a.ws {
		if stop[w.stem] || stop[w.lower] {
			continue
		}
		_, super := asSuperlative(w)
		if !w.content() || super || a.speaks(w) || w.quoted || w.proper || a.used[i] && !a.filled[i] {
			return ""
		}
		return w.lower
	}
	return ""
}

func quotedList(ws []string) string {
	q := make([]string, len(ws))
	for i, w := range ws {
		q[i] = fmt.Sprintf("%q", w)
	}
	if len(q) == 1 {
		return q[0]
	}
	return strings.Join(q[:len(q)-1], ", ") + " and " + q[len(q)-1]
}
