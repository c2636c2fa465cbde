package sqlite

import (
	"strings"

	"aob.dev/writ/storage"
)

// filter is one condition on a member: any of some values, or bounds.
type filter struct {
	member string // as in the table members
	values []any
	bounds []bound
}

type bound struct {
	operator string
	value    any
}

func filters(q storage.Selection) []filter {
	list := make([]filter, 0, len(q.Terms)+len(q.Ranges))
	for _, t := range q.Terms {
		list = append(list, filter{member: memberOf(t.Field), values: t.Values})
	}
	for _, r := range q.Ranges {
		f := filter{member: memberOf(r.Field)}
		for _, b := range []bound{{">=", r.GTE}, {">", r.GT}, {"<=", r.LTE}, {"<", r.LT}} {
			if b.value != nil {
				f.bounds = append(f.bounds, b)
			}
		}
		list = append(list, f)
	}
	return list
}

// memberOf is under which name a field's terms are.
func memberOf(f storage.Field) string {
	if f.Many {
		return f.Name + arrayMark
	}
	return f.Name
}

// where adds the condition on the table terms.
func (f filter) where(b *statement, space int64) {
	b.add("terms.space = ? AND terms.member = (SELECT number FROM members WHERE name = ?)", space, f.member)
	for i, v := range f.values {
		b.add(map[bool]string{true: " AND terms.value IN (?", false: ", ?"}[i == 0], v)
	}
	if len(f.values) > 0 {
		b.add(")")
	}
	for _, bound := range f.bounds {
		b.add(" AND terms.value "+bound.operator+" ?", bound.value)
	}
}

// matchQuery is the FTS5 query for any word of the text; empty if the text has no
// word. Words are quoted, so nothing in them is an operator.
func matchQuery(text string) string {
	list := storage.Words(text)
	if len(list) == 0 {
		return ""
	}
	for i, w := range list {
		list[i] = `"` + w + `"`
	}
	return "words : (" + strings.Join(list, " OR ") + ")"
}
