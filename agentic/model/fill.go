package model

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode"
)

type row map[string]json.RawMessage

// filling is what the input of a skill can be made from.
type filling struct {
	ws      []word
	src     *source
	query   query
	rows    []row    // result of an earlier step; not nil where there is one
	columns []string // of rows
}

// fill makes the input of a skill. It returns the required members that it has
// no value for, and which words of the task it used.
func fill(n *node, f filling) (json.RawMessage, []string, []bool) {
	used := make([]bool, len(f.ws))
	out := map[string]json.RawMessage{}
	var missing []string
	for _, p := range n.props {
		v := f.fromRows(p)
		if v == nil {
			v = f.fromQuery(p)
		}
		if v == nil && (n.required[p.name] || f.optional(p)) {
			v = f.fromWords(p, used)
		}
		switch {
		case v != nil:
			out[p.name] = v
		case n.required[p.name] && p.node.fallback != nil:
			out[p.name] = p.node.fallback
		case n.required[p.name]:
			missing = append(missing, p.name)
		}
	}
	for _, name := range sortedKeys(n.required) {
		if n.prop(name) == nil {
			missing = append(missing, name)
		}
	}
	raw, _ := json.Marshal(out) // values were encoded before
	return raw, missing, used
}

// optional inputs narrow what is fetched; they are used only where the result
// has no such column to filter by, and only for values that the schema lists.
func (f filling) optional(p prop) bool {
	return p.node.closed && p.node.fallback == nil && f.src != nil && f.src.records.field(p.name) == nil
}

// fromRows hands on an earlier result: all rows, a column, or its one value.
func (f filling) fromRows(p prop) json.RawMessage {
	if f.rows == nil {
		return nil
	}
	if p.node.is("array") && p.node.items != nil && (p.node.items.is("object") || len(p.node.items.props) > 0) {
		raw, _ := json.Marshal(f.rows)
		return raw
	}
	column := f.column(p.name)
	values := distinct(f.rows, column)
	switch {
	case column == "" || len(values) == 0:
		return nil
	case p.node.is("array"):
		raw, _ := json.Marshal(values)
		return raw
	case len(values) == 1 && fits(p.node, values[0]):
		return values[0]
	}
	return nil
}

// column finds the column of the rows that holds an input of this name.
func (f filling) column(input string) string {
	parts := split(input)
	for _, c := range f.columns {
		if strings.EqualFold(c, input) {
			return c
		}
	}
	if len(parts) == 2 && idWords[parts[1]] {
		for _, c := range f.columns {
			if idWords[stem(c)] {
				return c
			}
		}
	}
	return ""
}

func distinct(rows []row, column string) []json.RawMessage {
	var out []json.RawMessage
	for _, r := range rows {
		if v, ok := r[column]; ok && !isNull(v) && !slices.ContainsFunc(out, func(o json.RawMessage) bool { return string(o) == string(v) }) {
			out = append(out, v)
		}
	}
	return out
}

var (
	byWords    = stems("by field column key member attribute property criterion")
	queryWords = stems("query q search question prompt term topic keyword message text content input")
)

// fromQuery fills the members by which a skill is told a column and a direction.
func (f filling) fromQuery(p prop) json.RawMessage {
	if f.query.by == "" {
		return nil
	}
	name := split(p.name)
	lower := strings.ToLower(p.name)
	switch {
	case p.node.is("string") && !p.node.closed && overlaps(name, byWords):
		return json.RawMessage(quoteJSON(f.query.by))
	case p.node.is("boolean") && (strings.HasPrefix(lower, "desc") || lower == "reverse" || lower == "reversed"):
		return boolJSON(!f.query.asc)
	case p.node.is("boolean") && strings.HasPrefix(lower, "asc"):
		return boolJSON(f.query.asc)
	case p.node.closed:
		for _, v := range p.node.values {
			l := strings.ToLower(v)
			if f.query.asc && strings.HasPrefix(l, "asc") || !f.query.asc && strings.HasPrefix(l, "desc") {
				return json.RawMessage(quoteJSON(v))
			}
		}
	}
	return nil
}

func boolJSON(b bool) json.RawMessage {
	if b {
		return json.RawMessage("true")
	}
	return json.RawMessage("false")
}

// fromWords looks for a value of the member's type among the words of the task.
func (f filling) fromWords(p prop, used []bool) json.RawMessage {
	pick := func(i int) json.RawMessage {
		used[i] = true
		if p.node.is("number", "integer") && !p.node.is("string") {
			return json.RawMessage(number(f.ws[i].number))
		}
		return json.RawMessage(quoteJSON(f.ws[i].text))
	}
	name := slices.Concat(split(p.name), split(p.node.title))
	switch {
	case p.node.closed:
		return f.listed(p, used)
	case p.node.is("number", "integer"):
		if i := f.near(name, used, func(w word) bool { return w.isNum && (w.digits || !p.node.is("string")) }, !overlaps(name, idWords)); i >= 0 {
			return pick(i)
		}
	case p.node.is("boolean"):
		for i, w := range f.ws {
			if slices.Contains(name, w.stem) && w.content() {
				used[i] = true
				return boolJSON(true)
			}
		}
	case strings.HasPrefix(p.node.format, "date"):
		if i := f.near(name, used, func(w word) bool { return w.date }, true); i >= 0 {
			return pick(i)
		}
	case p.node.is("string") && overlaps(split(p.name), queryWords):
		return f.phrase(used)
	case p.node.is("string"):
		names := !overlaps(name, idWords)
		if i := f.near(name, used, func(w word) bool { return w.quoted || names && w.proper || code(w) }, names); i >= 0 {
			return pick(i)
		}
	}
	return nil
}

// listed finds a word of the task among the values that a schema enumerates.
func (f filling) listed(p prop, used []bool) json.RawMessage {
	for i, w := range f.ws {
		for _, v := range p.node.values {
			if strings.EqualFold(v, w.text) || stem(v) == w.stem && !stop[w.stem] {
				used[i] = true
				return json.RawMessage(quoteJSON(v))
			}
		}
	}
	return nil
}

// near finds a word of the wanted kind: just after or before the member's own
// name, else, where anywhere is allowed, the first that nothing else used.
func (f filling) near(name []string, used []bool, want func(word) bool, anywhere bool) int {
	first := -1
	for i, w := range f.ws {
		if used[i] || !want(w) || i > 0 && (f.ws[i-1].lower == "top" || f.ws[i-1].lower == "first") {
			continue
		}
		if first < 0 {
			first = i
		}
		for _, k := range []int{i - 1, i - 2, i + 1} {
			if k >= 0 && k < len(f.ws) && slices.Contains(name, f.ws[k].stem) {
				used[k] = true
				return i
			}
		}
	}
	if anywhere || first >= 0 && f.ws[first].quoted {
		return first
	}
	return -1
}

// code reports whether a word looks like an identifier: letters and digits in one.
func code(w word) bool {
	return !w.date && !w.isNum && strings.ContainsFunc(w.text, unicode.IsDigit) && strings.ContainsFunc(w.text, unicode.IsLetter)
}

// phrase is the text that a task hands to a skill: what it quotes, else the
// words that the skill's own declaration does not explain.
func (f filling) phrase(used []bool) json.RawMessage {
	var text []string
	for i, w := range f.ws {
		if w.quoted {
			used[i] = true
			return json.RawMessage(quoteJSON(w.text))
		}
		if f.src != nil && !f.src.about[w.stem] && (w.content() || w.isNum) {
			used[i] = true
			text = append(text, w.text)
		}
	}
	if len(text) == 0 {
		return nil
	}
	return json.RawMessage(quoteJSON(strings.Join(text, " ")))
}

func sortedKeys(m map[string]bool) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}
