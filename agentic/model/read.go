package model

import (
	"slices"
	"strings"
)

// reading is one attempt to understand a task as a query on a source. Each
// word is used at most once; what stays unused tells how well the source fits.
type reading struct {
	src  *source
	ws   []word
	used []bool
	q    query

	whole      bool // every value may be looked for in any text column
	superAt    int  // where the superlative is, -1 for none
	super      superlative
	unresolved bool     // it orders by nothing that this source has
	missing    []string // what was asked for by name and is not there
	most       bool     // the superlative counts records: "the most orders"
	entities   int      // words that name the records
	fits       int      // how well the words that found a field fit it
}

// read understands words against a source. Words already used by another
// reading stay used.
func read(src *source, ws []word, used []bool, whole bool) *reading {
	r := &reading{src: src, ws: ws, used: slices.Clone(used), superAt: -1, whole: whole}
	if r.used == nil {
		r.used = make([]bool, len(ws))
	}
	r.findEntities()
	r.comparisons()
	r.superlative()
	r.folds()
	r.groups()
	r.ordering()
	r.values()
	r.limits()
	r.selected()
	r.settle()
	return r
}

func (r *reading) stem(i int) string {
	if i < 0 || i >= len(r.ws) {
		return ""
	}
	return r.ws[i].stem
}

func (r *reading) lower(i int) string {
	if i < 0 || i >= len(r.ws) {
		return ""
	}
	return r.ws[i].lower
}

func (r *reading) use(from, n int) {
	for i := from; i < from+n && i < len(r.used); i++ {
		if i >= 0 {
			r.used[i] = true
		}
	}
}

// names reports whether the word is a noun for the records themselves.
func (r *reading) names(i int) bool {
	if i < 0 || i >= len(r.ws) || r.ws[i].quoted || r.ws[i].proper {
		return false
	}
	return knows(r.src.entity, r.ws[i].stem)
}

func (r *reading) findEntities() {
	for i := range r.ws {
		if r.names(i) {
			r.entities++
		}
	}
}

// mention finds the field that the words at i name, and of how many words the
// name is. A noun for the records names a field only as a whole name.
func (r *reading) mention(i int, want func(*field) bool) (*field, int) {
	var found *field
	n := 0
	for _, f := range r.src.records.fields {
		for _, name := range [][]string{f.name, f.title} {
			if len(name) > 1 && len(name) > n && want(f) && r.spells(i, name) {
				found, n = f, len(name)
			}
		}
	}
	if found != nil {
		return found, n
	}
	if i < 0 || i >= len(r.ws) || !r.vocabulary(i) {
		return nil, 0
	}
	least := fitAlike
	if r.names(i) {
		least = fitWhole
	}
	if f := r.src.best(r.ws[i].stem, least, want); f != nil {
		return f, 1
	}
	for _, f := range r.src.records.fields {
		if f.column == r.ws[i].text && want(f) {
			return f, 1
		}
	}
	return nil, 0
}

// vocabulary reports whether the word can be part of a name of a field.
func (r *reading) vocabulary(i int) bool {
	w := r.ws[i]
	return !w.quoted && !w.proper && !w.isNum && !w.op && (!stop[w.stem] || w.stem == "number")
}

func (r *reading) spells(i int, name []string) bool {
	for k, part := range name {
		if i+k >= len(r.ws) || i < 0 || r.ws[i+k].stem != part || r.ws[i+k].quoted {
			return false
		}
	}
	return true
}

// after returns the first field mentioned within reach words after i.
func (r *reading) after(i, reach int, want func(*field) bool) (f *field, at, n int) {
	for k := i + 1; k <= i+reach && k < len(r.ws); k++ {
		if f, n := r.mention(k, want); f != nil {
			return f, k, n
		}
		if r.ws[k].op || r.ws[k].isNum {
			break
		}
	}
	return nil, 0, 0
}

// before returns the nearest field mentioned within reach words before i.
func (r *reading) before(i, reach int, want func(*field) bool) (f *field, at, n int) {
	for k := i - 1; k >= i-reach && k >= 0; k-- {
		if f, n := r.mention(k, want); f != nil {
			return f, k, n
		}
	}
	return nil, 0, 0
}

func (r *reading) where(f *field, op, value string) {
	c := condition{anyText, op, value}
	if f != nil {
		c.column = f.column
	}
	if !slices.Contains(r.q.where, c) {
		r.q.where = append(r.q.where, c)
	}
}

// plural reports whether the word is written as more than one.
func plural(w word) bool {
	return strings.HasSuffix(w.lower, "s") && !hasAnySuffix(w.lower, "ss", "us", "is")
}
