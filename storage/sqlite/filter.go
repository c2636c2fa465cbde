package sqlite

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
)

const (
	// maxValues bounds the values of one member in a query.
	maxValues = 256
	// maxWords bounds the words of a full-text query; the rest is ignored.
	maxWords = 64
)

// filter is one member of Query.Terms.
type filter struct {
	member string
	values []any
}

func filters(terms map[string][]string) ([]filter, error) {
	list := make([]filter, 0, len(terms))
	for _, member := range slices.Sorted(maps.Keys(terms)) {
		if !memberName.MatchString(member) {
			return nil, fmt.Errorf("term %q is no member", member)
		}
		if len(terms[member]) > maxValues {
			return nil, fmt.Errorf("term %s: more than %d values", member, maxValues)
		}
		f := filter{member: member}
		for _, v := range terms[member] {
			f.values = append(f.values, v)
			if n, ok := number(json.Number(v)); ok && json.Valid([]byte(v)) {
				f.values = append(f.values, n)
			}
		}
		list = append(list, f)
	}
	return list, nil
}

// where adds the condition on the table terms. Without values nothing matches.
func (f filter) where(b *statement, space int64) {
	b.add("terms.space = ? AND terms.member IN (SELECT number FROM members WHERE name IN (?, ?)) AND terms.value IN (",
		space, f.member, f.member+arrayMark)
	for i, v := range f.values {
		if i > 0 {
			b.add(", ")
		}
		b.add("?", v)
	}
	b.add(")")
}

// matchQuery is the FTS5 query for any word of the text in a space; empty if the
// text has no word. Words are quoted, so nothing in them is an operator.
func matchQuery(space int64, text string) string {
	list := strings.FieldsFunc(text, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsNumber(r) && !unicode.IsMark(r)
	})
	if len(list) == 0 {
		return ""
	}
	for i, w := range list {
		list[i] = `"` + w + `"`
	}
	return fmt.Sprintf("space : %s AND words : (%s)", spaceToken(space), strings.Join(list[:min(len(list), maxWords)], " OR "))
}
