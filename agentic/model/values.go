package model

import (
	"slices"
	"strings"
)

// values finds the words that are values of fields: enumerated ones, flags,
// names, quotes and identifiers.
func (r *reading) values() {
	for i := range r.ws {
		if r.used[i] {
			continue
		}
		w := r.ws[i]
		switch {
		case r.enumerated(i), r.flag(i), r.numbered(i):
		case w.quoted || w.proper || w.date || r.leadingName(i):
			r.named(i)
		default:
			r.described(i)
		}
	}
}

func (r *reading) negated(i int) bool {
	return slices.ContainsFunc([]string{r.lower(i - 1), r.lower(i - 2)}, func(w string) bool {
		return w == "not" || w == "isn't" || w == "aren't" || w == "without" || w == "except"
	})
}

// enumerated matches the values that a schema lists.
func (r *reading) enumerated(i int) bool {
	var found *field
	value, n := "", 0
	for _, f := range r.src.records.fields {
		for _, v := range f.node.values {
			name := split(v)
			if len(name) <= n || !r.spells(i, name) && !r.isValue(i, v) {
				continue
			}
			if len(name) == 1 && !r.ws[i].quoted && (stop[name[0]] || asks[name[0]]) {
				continue
			}
			found, value, n = f, v, len(name)
			if r.isValue(i, v) {
				n = 1
			}
		}
	}
	if found == nil {
		return false
	}
	r.condition(found, i, n, opIs, value)
	return true
}

func (r *reading) isValue(i int, v string) bool {
	return (r.ws[i].quoted || r.ws[i].proper) && strings.EqualFold(r.ws[i].text, v)
}

// condition records that a field has a value, and uses up the field's own name
// where it stands just before ("status is open").
func (r *reading) condition(f *field, i, n int, op, value string) {
	if op == opIs && r.negated(i) {
		op = opNot
	}
	r.where(f, op, quoteJSON(value))
	r.use(i, n)
	r.fits += fitWord
	if own, at, k := r.before(i, 3, anyField); own == f {
		r.use(at, k)
	}
}

// opposites are the adjectives whose contrary is no prefixed form.
var opposites = map[string]string{"closed": "open", "shut": "open", "disabled": "enabled", "absent": "present", "off": "on"}

// flag matches the names of boolean fields ("active", "is_open", "unpaid").
func (r *reading) flag(i int) bool {
	w := r.ws[i]
	if w.quoted || w.proper || !w.content() {
		return false
	}
	for _, try := range []struct {
		word  string
		value bool
	}{
		{w.lower, true},
		{opposites[w.lower], false},
		{strings.TrimPrefix(w.lower, "un"), false},
		{strings.TrimPrefix(w.lower, "in"), false},
		{strings.TrimPrefix(w.lower, "non-"), false},
	} {
		if try.word == "" || !try.value && try.word == w.lower {
			continue
		}
		if f := r.src.best(stem(try.word), fitWord, (*field).boolean); f != nil {
			value := "true"
			if try.value == r.negated(i) {
				value = "false"
			}
			r.where(f, opIs, value)
			r.use(i, 1)
			r.fits += fitWord
			return true
		}
	}
	return false
}

// numbered reads "order 17" and "outlet #3".
func (r *reading) numbered(i int) bool {
	w := r.ws[i]
	if !w.digits || !r.names(i-1) || plural(r.ws[i-1]) {
		return false
	}
	for _, f := range r.src.records.fields {
		if f.id() && f.scalar() {
			r.condition(f, i, 1, opIs, w.text)
			return true
		}
	}
	return false
}

// leadingName reports whether a capitalised first word is a name that the
// records are qualified with ("Berlin outlets").
func (r *reading) leadingName(i int) bool {
	w := r.ws[i]
	return w.first && w.content() && r.names(i+1) && !r.src.about[w.stem] && w.text != w.lower
}

// named decides which field a name or quote is a value of.
func (r *reading) named(i int) {
	w := r.ws[i]
	lead := i - 1
	for lead > 0 && slices.Contains([]string{"is", "are", "was", "were", "be", "of", "the", "=", "to", "equal", "equals"}, r.lower(lead)) {
		lead--
	}
	// A name is no identifier: "the outlet Mitte" gives no outlet_id.
	want := func(f *field) bool { return (f.text() || f.when()) && (!f.id() || w.quoted || code(w)) }
	if f, _ := r.mention(lead, want); f != nil && !r.names(lead) {
		r.condition(f, i, 1, opMention, w.text)
		r.use(lead, 1)
		return
	}
	if w.date {
		if f := r.src.timed(); f != nil {
			r.condition(f, i, 1, opMention, w.text)
		}
		return
	}
	prep := r.lower(lead)
	if f := r.byPreposition(prep, lead); f != nil {
		r.condition(f, i, 1, opMention, w.text)
		return
	}
	for _, f := range r.src.records.fields {
		if f.text() && f.about[w.stem] {
			r.condition(f, i, 1, opMention, w.text)
			return
		}
	}
	if r.whole && slices.ContainsFunc(r.src.records.fields, (*field).text) {
		r.condition(nil, i, 1, opMention, w.text)
	}
}

// byPreposition reads "in Berlin", "called Mitte", "outlet Mitte".
func (r *reading) byPreposition(prep string, at int) *field {
	switch prep {
	case "in", "at", "near", "around", "within", "from", "to", "of":
		if i := slices.IndexFunc(r.src.records.fields, (*field).where); i >= 0 && prep != "of" && prep != "to" {
			return r.src.records.fields[i]
		}
	case "called", "named", "titled":
		return r.src.label()
	}
	if r.names(at) && !plural(r.ws[at]) {
		return r.src.label()
	}
	return nil
}

// described matches a predicate ("are open", "open outlets") that only the
// description of a text field speaks of.
func (r *reading) described(i int) {
	w := r.ws[i]
	if !w.content() || r.names(i) || sorts[w.lower] {
		return
	}
	predicate := slices.Contains([]string{"are", "is", "were", "was", "still", "currently", "not", "that", "with", "been"}, r.lower(i-1)) || r.names(i+1)
	if f, _ := r.mention(i, anyField); f != nil || !predicate {
		return
	}
	if _, ok := asSuperlative(w); ok {
		return
	}
	for _, f := range r.src.records.fields {
		if f.text() && f.about[w.stem] && !f.id() && f != r.src.label() && !f.where() {
			r.condition(f, i, 1, opIs, w.lower)
			return
		}
	}
}
