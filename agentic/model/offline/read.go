package offline

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// query is a request to one table. As JSON it is the parameter of the script that answers it.
type query struct {
	Where []condition `json:"where"`
	Count bool        `json:"count"`
	By    *column     `json:"by"` // the column that orders the records; nil: none
	Asc   bool        `json:"asc"`
	Limit int         `json:"limit"` // 0: none

	columns []*column // to return; none: all
	extreme bool      // only the first of the order is wanted
}

// condition selects the records whose column compares with the value by Op. Op is the name that
// where of query.py uses; "mentions" is equal to a text or, if no record is, contains its words.
type condition struct {
	Columns []*column `json:"columns"`
	Op      string    `json:"op"`
	Value   any       `json:"value"`
}

// plain reports whether a query asks for all records unchanged.
func (q *query) plain() bool { return len(q.Where) == 0 && !q.Count && q.By == nil && q.Limit == 0 }

// reading is a request, as far as it is understood as a query of one table.
type reading struct {
	query
	t       *table
	tokens  []token
	done    []bool
	which   bool           // it begins with that word
	input   map[string]any // of the skill
	score   int            // how much of the request the table's own words explain
	problem string         // why the table does not answer the request; empty: it does
}

// read interprets the words of a request.
func read(t *table, ws []word) *reading {
	r := &reading{t: t, tokens: t.tokens(ws), which: len(ws) > 0 && ws[0].lower == "which"}
	r.done = make([]bool, len(r.tokens))
	r.order()
	for _, first := range []bool{true, false} { // comparisons first; they may continue with a column before them
		for i, k := range r.tokens {
			if comparing[k.says] == first && !r.done[i] {
				r.done[i] = r.take(i, k)
			}
		}
	}
	others := slices.ContainsFunc(r.tokens, func(k token) bool { return !k.noun && slices.Contains(r.columns, k.col) })
	r.selected(others)
	r.rest()
	return r
}

func (r *reading) fail(format string, args ...any) {
	r.problem = cmp.Or(r.problem, fmt.Sprintf(format, args...))
}

func (r *reading) keep(op string, value any, of ...*column) bool {
	r.Where = append(r.Where, condition{of, op, value})
	return true
}

// token returns the token at i; empty outside the request.
func (r *reading) token(i int) token {
	if i < 0 || i >= len(r.tokens) {
		return token{}
	}
	return r.tokens[i]
}

// near consumes a column of numbers that is named at one of the places.
func (r *reading) near(places ...int) *column {
	for _, i := range places {
		if c := r.token(i).col; c != nil && c.numeric() {
			r.done[i] = true
			return c
		}
	}
	return nil
}

// order reads "the highest revenue", "the strongest", "the top 2 by seats", and
// for all records "sorted by seats in ascending order".
func (r *reading) order() {
	for i, k := range r.tokens {
		if next := r.token(i + 1); k.says == "by" && next.col != nil {
			r.By, r.Asc, r.done[i], r.done[i+1] = next.col, true, true, true
		}
	}
	for i, k := range r.tokens {
		if k.says != "largest" && k.says != "smallest" {
			continue
		}
		of := cmp.Or(r.By, k.col, r.near(i+1, i+2))
		if of == nil && k.lower != "most" && k.lower != "fewest" {
			of = r.t.measure("")
		}
		if of == nil {
			r.fail("%s does not say what %q is measured by. Name what is to be compared, such as %q.", r.t.skill, k.text, "the highest "+r.t.example())
			return
		}
		r.By, r.Asc, r.extreme, r.done[i] = of, k.says == "smallest", true, true
		singular := slices.IndexFunc(r.tokens, func(k token) bool { return k.noun })
		if singular >= 0 && r.tokens[singular].lower == r.tokens[singular].stem {
			r.Limit = 1
		}
		return
	}
}

// take consumes a token with the following ones that belong to it; false: it has no meaning here.
func (r *reading) take(i int, k token) bool {
	next, before := r.token(i+1), r.token(i-1)
	beside := next.says == "largest" || next.says == "smallest" || before.says == "largest" || before.says == "smallest"
	switch {
	case k.says == "count":
		return r.count(i)
	case comparing[k.says]:
		return r.compare(i, k)
	case k.says == "ascending" || k.says == "descending":
		r.Asc = k.says == "ascending"
		return r.By != nil && !r.extreme
	case k.says == "not":
		return next.value != nil
	case k.isNumber && !r.Count && k.number >= 1 && k.number == float64(int(min(k.number, 1e6))) && (next.noun || r.extreme && (next.col != nil || beside)):
		r.Limit = int(k.number)
		return true
	case k.value != nil && before.says == "not":
		return r.keep("is not", k.value.Value, k.value.Columns...)
	case k.value != nil:
		return r.keep("is", k.value.Value, k.value.Columns...)
	case k.col != nil && k.col.typ == "string" && next.isName && (!k.col.identifies() || strings.ContainsAny(next.text, "0123456789")):
		r.done[i+1] = true
		return r.keep("is", next.text, k.col)
	case k.col != nil:
		if !slices.Contains(r.columns, k.col) {
			r.columns = append(r.columns, k.col)
		}
		return true
	case k.isName && !k.noun && !r.t.speaks[k.stem]:
		return r.name(i, k)
	}
	return k.noun
}

// count reads "how many outlets", "number of outlets", "count the outlets".
func (r *reading) count(i int) bool {
	r.Count = true
	k := slices.IndexFunc(r.tokens[i:], func(k token) bool { return k.noun || k.col != nil })
	if k < 0 || !r.tokens[i+k].noun || r.extreme {
		r.fail("%s returns %s, and only those can be counted.", r.t.skill, r.t.plural)
	}
	return true
}

var comparing = map[string]bool{"over": true, "under": true, "at least": true, "at most": true}

// compare reads "over 140 euros" and "a magnitude above 5". The column is named beside the words,
// or it is the only one whose description has the unit, or the only one of numbers.
func (r *reading) compare(i int, k token) bool {
	value, unit := r.token(i+1), r.token(i+2)
	of := r.near(i+2, i-1)
	if c := r.t.measure(unit.stem); of == nil && unit.stem != "" && c != nil {
		of, r.done[i+2] = c, true
	}
	if of = cmp.Or(of, r.t.measure("")); of == nil || !value.isNumber {
		r.fail("%s does not say what is compared with %q.", r.t.skill, value.text)
		return true
	}
	r.done[i+1] = true
	return r.keep(k.says, value.number, of)
}

// name reads a name, quote or identifier as a value of any column of texts. After the word for
// another thing it is a name of that thing, which these records do not know.
func (r *reading) name(i int, k token) bool {
	texts := slices.DeleteFunc(slices.Clone(r.t.columns), func(c *column) bool { return c.typ != "string" || len(c.values) > 0 })
	foreign := slices.ContainsFunc(r.tokens[:i], func(k token) bool { return k.col != nil && k.col.identifies() && !k.col.is([]string{"id"}) })
	second := slices.ContainsFunc(r.Where, func(c condition) bool { return c.Op == "mentions" })
	return !foreign && !second && len(texts) > 0 && r.keep("mentions", k.text, texts...)
}

// selected determines the columns to return. others: columns other than the noun are named. For
// extremes these are the column that identifies the records, and the column that they are
// compared by.
func (r *reading) selected(others bool) {
	label := r.t.label()
	switch {
	case others && r.Count:
		r.fail("One request asks for one number.")
	case others && !r.extreme && r.which:
		r.fail("%s does not say which %s are meant.", r.t.skill, r.t.plural)
	case !r.extreme && (!others || r.By != nil):
		r.columns = nil
	case r.extreme && !others && label != nil:
		r.columns = []*column{label}
	}
	if r.extreme && !slices.Contains(r.columns, r.By) {
		r.columns = append(r.columns, r.By)
	}
}

// rest finds the words that no rule above explains.
func (r *reading) rest() {
	about := append(slices.Clone(r.columns), r.By)
	for _, c := range r.Where {
		if len(c.Columns) == 1 {
			about = append(about, c.Columns[0])
		}
	}
	var unknown []string
	for i, k := range r.tokens {
		described := slices.ContainsFunc(about, func(c *column) bool { return c != nil && c.about[k.stem] })
		switch {
		case k.noun:
			r.score += 2
		case r.done[i] || r.t.named && r.t.speaks[k.stem]:
			r.score++
		case !r.t.speaks[k.stem] && !described:
			unknown = append(unknown, k.text)
		}
	}
	switch {
	case len(unknown) > 0:
		r.fail("%s does not say what %s means here.", r.t.skill, quoted(unknown))
	case r.score == 0:
		r.fail("%s has to do with something else.", r.t.skill)
	case (len(r.t.columns) == 0 || r.t.single) && !r.plain():
		r.fail("%s does not return records that could be counted or compared.", r.t.skill)
	}
}
