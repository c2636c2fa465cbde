package offline

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// reading is a request, as far as it is understood as a query of one table.
type reading struct {
	query
	t       *table
	ws      []word
	used    []bool
	score   int    // how much of the request the table's own words explain
	problem string // why the table does not answer the request; empty: it does
	sorted  bool   // all records are wanted, in an order
	extreme int    // where the word is by which only the first of an order are wanted; -1: nowhere
}

// read understands the words of a request that are not used yet. Each method
// below takes the words of one form.
func read(t *table, ws []word, used []bool) *reading {
	r := &reading{t: t, ws: ws, used: slices.Clone(used), extreme: -1}
	if used == nil {
		r.used = make([]bool, len(ws))
	}
	for i, w := range ws {
		r.used[i] = r.used[i] || w.key != "" // arguments
	}
	r.count()
	r.folds()
	r.comparisons()
	r.order()
	r.limit()
	r.groups()
	r.values()
	r.names()
	r.selected()
	r.rest()
	return r
}

func (r *reading) fail(format string, args ...any) {
	if r.problem == "" {
		r.problem = fmt.Sprintf(format, args...)
	}
}

func (r *reading) use(i, n int) {
	for k := i; k < i+n; k++ {
		r.used[k] = true
	}
}

// lower is the word at i; empty outside the request and where it is used.
func (r *reading) lower(i int) string {
	if i < 0 || i >= len(r.ws) || r.used[i] {
		return ""
	}
	return r.ws[i].lower
}

func (r *reading) noun(i int) bool {
	return i >= 0 && i < len(r.ws) && r.ws[i].kind == plainWord && r.t.nouns[r.ws[i].stem]
}

// mention finds the column that is named at i, and by how many words.
func (r *reading) mention(i int, want func(*column) bool) (best *column, n int) {
	for k := range r.t.columns {
		c := &r.t.columns[k]
		for _, phrase := range c.phrases {
			if len(phrase) > n && r.says(i, phrase) && (want == nil || want(c)) {
				best, n = c, len(phrase)
			}
		}
	}
	return best, n
}

func (r *reading) says(i int, phrase []string) bool {
	for k, s := range phrase {
		if r.lower(i+k) == "" || r.ws[i+k].stem != s {
			return false
		}
	}
	return true
}

// near finds a column that is named by one of the words at from and the next ones.
func (r *reading) near(from, words int, want func(*column) bool) (c *column, at, n int) {
	for i := max(from, 0); i < from+words && i < len(r.ws); i++ {
		if c, n := r.mention(i, want); c != nil {
			return c, i, n
		}
	}
	return nil, 0, 0
}

// count reads "how many outlets", "number of outlets", "count the outlets".
func (r *reading) count() {
	for i := range r.ws {
		n := 1
		switch {
		case r.lower(i) == "how" && r.lower(i+1) == "many", r.lower(i) == "number" && r.lower(i+1) == "of":
			n = 2
		case r.lower(i) != "count":
			continue
		}
		r.use(i, n)
		r.Fold = foldCount
		for k := i + n; k < len(r.ws); k++ {
			if c, _ := r.mention(k, func(c *column) bool { return c.typ != "boolean" }); r.noun(k) {
				return
			} else if c != nil {
				break
			}
		}
		r.fail("%s returns %s, and only those can be counted.", r.t.name(), r.t.plural)
		return
	}
}

// folds reads "total revenue" and "the average order amount".
func (r *reading) folds() {
	for i := range r.ws {
		fold := map[string]string{"total": foldTotal, "sum": foldTotal, "average": foldAverage, "mean": foldAverage}[r.lower(i)]
		if fold == "" {
			continue
		}
		if c, at, n := r.near(i+1, 4, (*column).numeric); c != nil {
			if r.Fold != "" {
				r.fail("One request asks for one number.")
			}
			r.use(i, 1)
			r.use(at, n)
			r.Fold, r.Of = fold, c
		}
	}
}

// comparing are the words ahead of a number.
var comparing = []struct{ words, op string }{
	{"more than", opOver},
	{"less than", opUnder},
	{"fewer than", opUnder},
	{"at least", opLeast},
	{"at most", opMost},
	{"over", opOver},
	{"above", opOver},
	{"under", opUnder},
	{"below", opUnder},
}

// comparisons reads "over 140 euros" and "a magnitude above 5".
func (r *reading) comparisons() {
	for i := range r.ws {
		for _, c := range comparing {
			n := strings.Count(c.words, " ") + 1
			if value := i + n; r.says(i, strings.Fields(c.words)) && value < len(r.ws) && r.ws[value].kind == numberWord {
				r.compare(i, value, c.op)
				break
			}
		}
	}
}

// compare keeps what compares so with the number at value; the words from begin
// on say so. The column is named beside them, or it is the only one of numbers,
// or the only one whose description has the unit.
func (r *reading) compare(begin, value int, op string) {
	c, at, n := r.near(value+1, 2, (*column).numeric)
	if c == nil {
		c, at, n = r.near(begin-2, 2, (*column).numeric)
	}
	if c == nil {
		at, n = value+1, 0
		if c = r.t.only(func(*column) bool { return true }); at < len(r.ws) && r.ws[at].content() {
			c, n = r.t.measuredBy(r.ws[at].stem), 1
		}
	}
	if c == nil {
		r.fail("%s does not say what is compared with %q.", r.t.name(), r.ws[value].text)
		return
	}
	r.use(begin, value-begin+1)
	r.use(at, n)
	r.Where = append(r.Where, condition{[]column{*c}, op, r.ws[value].number})
}

// name is what to call the table in a refusal.
func (t *table) name() string { return cmp.Or(t.skill, "The data") }

var (
	largest  = set("highest largest biggest greatest most top")
	smallest = set("lowest smallest least fewest")
	sorting  = set("sort sorted ordered rank ranked")
)

func extreme(w word) bool { return largest[w.lower] || smallest[w.lower] }

// order reads "the highest revenue", "the strongest", "the top 2 by seats", and
// for all records "sorted by seats in ascending order".
func (r *reading) order() {
	by, atBy, nBy := r.by()
	for i, w := range r.ws {
		base, est := strings.CutSuffix(r.lower(i), "est")
		if r.lower(i) == "" || !extreme(w) && !(est && r.t.measuredBy(base) != nil) || r.lower(i+1) == "first" {
			continue
		}
		c, at, n := by, atBy, nBy
		if c == nil {
			c, at, n = r.near(i+1, 3, (*column).numeric)
		}
		if c == nil && !extreme(w) {
			c = r.t.measuredBy(base)
		} else if c == nil && w.lower != "most" && w.lower != "fewest" {
			c = r.t.only(func(*column) bool { return true })
		}
		if c == nil || r.Fold != "" {
			r.fail("%s does not say what %q is measured by. Name what is to be compared, such as %q.", r.t.name(), w.text, "the highest "+r.t.example())
			continue
		}
		r.use(i, 1)
		r.use(at, n)
		r.By, r.Asc, r.extreme = c, smallest[w.lower], i
		return
	}
	if by != nil && r.Fold == "" {
		r.use(atBy, nBy)
		r.By, r.Asc, r.sorted = by, true, true
		r.direction()
	}
}

// by reads "by seats".
func (r *reading) by() (c *column, at, n int) {
	for i := range r.ws {
		if c, n := r.mention(i+1, nil); c != nil && r.lower(i) == "by" {
			return c, i, n + 1
		}
	}
	return nil, 0, 0
}

// direction reads "in descending order" and "highest first" beside a column that orders.
func (r *reading) direction() {
	for i, w := range r.ws {
		n := 1
		switch {
		case r.lower(i) == "":
			continue
		case extreme(w) && r.lower(i+1) == "first":
			r.Asc, n = smallest[w.lower], 2
		case w.lower == "descending", w.lower == "ascending":
			if r.Asc = w.lower == "ascending"; r.lower(i+1) == "order" {
				n = 2
			}
		case !sorting[w.lower]:
			continue
		}
		r.use(i, n)
	}
}

// limit reads how many records are wanted: a number ahead of the noun or of a
// column, or beside the word for the extreme; or one, where an extreme is asked
// for and the noun is singular.
func (r *reading) limit() {
	for i, w := range r.ws {
		n := int(min(w.number, 1e6))
		if n < 1 || float64(n) != w.number || r.used[i] || r.Fold != "" {
			continue
		}
		c, _ := r.mention(i+1, nil)
		if r.noun(i+1) || r.extreme >= 0 && (c != nil || i == r.extreme-1 || i == r.extreme+1) {
			r.use(i, 1)
			r.Limit = n
			return
		}
	}
	if i := slices.IndexFunc(r.ws, func(w word) bool { return r.t.nouns[w.stem] }); r.extreme >= 0 && i >= 0 && r.ws[i].lower == r.ws[i].stem {
		r.Limit = 1
	}
}

// groups reads "per outlet", "by city", "in each city".
func (r *reading) groups() {
	for i := range r.ws {
		if w := r.lower(i); r.Fold != "" && (w == "per" || w == "by" || w == "each" || w == "every") {
			if c, n := r.mention(i+1, func(c *column) bool { return !c.numeric() }); c != nil {
				r.use(i, n+1)
				r.Per = append(r.Per, *c)
			}
		}
	}
}

// values reads the values that columns declare, "open" or "not open", and
// columns that are true or false, "paid" or "not paid".
func (r *reading) values() {
	for i := range r.ws {
		not := r.lower(i-1) == "not"
		if c, n := r.mention(i, func(c *column) bool { return c.typ == "boolean" }); c != nil {
			r.keep(i, n, not, condition{[]column{*c}, opIs, !not})
			continue
		}
		for k := range r.t.columns {
			c := &r.t.columns[k]
			for _, v := range c.values {
				phrase := stems(v)
				if len(phrase) == 0 || !r.says(i, phrase) {
					continue
				}
				op := opIs
				if not {
					op = opNot
				}
				r.keep(i, len(phrase), not, condition{[]column{*c}, op, v})
			}
		}
	}
}

func (r *reading) keep(i, n int, not bool, c condition) {
	if r.use(i, n); not {
		r.use(i-1, 1)
	}
	r.Where = append(r.Where, c)
}

// names reads names, quotes and identifiers: values of the column that stands
// ahead of them, or of any column of texts. What follows the word for another
// thing is a name of that, which these records do not know.
func (r *reading) names() {
	var foreign *column
	for i, w := range r.ws {
		c, n := r.mention(i, func(c *column) bool { return c.typ == "string" })
		if c != nil && c.identifies() && !c.own() {
			foreign = c
		}
		next := i + n
		if c != nil && next < len(r.ws) && !r.used[next] && r.ws[next].kind == nameWord && (!c.identifies() || strings.ContainsAny(r.ws[next].text, "0123456789")) {
			r.use(i, n+1)
			r.Where = append(r.Where, condition{[]column{*c}, opIs, r.ws[next].text})
			continue
		}
		if own, _ := r.mention(i, nil); r.used[i] || w.kind != nameWord || own != nil || r.t.nouns[w.stem] || r.t.speaks[w.stem] {
			continue
		}
		var texts []column
		for _, c := range r.t.columns {
			if c.typ == "string" && len(c.values) == 0 {
				texts = append(texts, c)
			}
		}
		if foreign != nil || len(texts) == 0 || slices.ContainsFunc(r.Where, func(c condition) bool { return c.Op == opMention }) {
			r.fail("%s does not know what to do with %q.", r.t.name(), w.text)
			return
		}
		r.use(i, 1)
		r.Where = append(r.Where, condition{texts, opMention, w.text})
	}
}

// selected reads which columns are wanted. Of extremes these are what tells the
// records apart, and what they are compared by.
func (r *reading) selected() {
	others := false
	for i := range r.ws {
		c, n := r.mention(i, nil)
		if c == nil {
			continue
		}
		own := r.noun(i)
		if r.use(i, n); !slices.ContainsFunc(r.columns, func(d column) bool { return d.Name == c.Name }) {
			r.columns = append(r.columns, *c)
		}
		others = others || !own
	}
	if others && r.Fold != "" {
		r.fail("One request asks for one number.")
	}
	if others && r.extreme < 0 && r.lower(0) == "which" {
		r.fail("%s does not say which %s are meant.", r.t.name(), r.t.plural)
	}
	if !others || r.sorted {
		r.columns = nil
	}
	if r.By == nil || r.sorted {
		return
	}
	if label := r.t.label(); !others && label != nil {
		r.columns = []column{*label}
	}
	if !slices.ContainsFunc(r.columns, func(d column) bool { return d.Name == r.By.Name }) {
		r.columns = append(r.columns, *r.By)
	}
	for i, c := range r.columns { // the first of an order are records that have what is shown
		r.columns[i].nullable = false
		if c.nullable {
			r.Where = append(r.Where, condition{[]column{c}, opKnown, nil})
		}
	}
}

// rest finds the words that nothing above could place.
func (r *reading) rest() {
	var unknown []string
	for i, w := range r.ws {
		if r.noun(i) {
			r.score += 2
		}
		switch {
		case r.used[i]:
			r.score++
		case r.noun(i), !w.content(), r.t.speaks[w.stem], r.described(w):
		default:
			unknown = append(unknown, w.text)
		}
	}
	switch {
	case len(unknown) > 0:
		r.fail("%s does not say what %s means here.", r.t.name(), quoted(unknown))
	case r.score == 0:
		r.fail("%s has to do with something else.", r.t.name())
	case (len(r.t.columns) == 0 || r.t.single) && !r.plain():
		r.fail("%s does not return records that could be counted or compared.", r.t.name())
	}
}

// described reports whether a word describes a column that the answer is about.
func (r *reading) described(w word) bool {
	about := slices.Concat(r.columns, r.Per)
	for _, c := range []*column{r.By, r.Of} {
		if c != nil {
			about = append(about, *c)
		}
	}
	for _, c := range r.Where {
		if len(c.Columns) == 1 {
			about = append(about, c.Columns[0])
		}
	}
	return slices.ContainsFunc(about, func(c column) bool { return c.about[w.stem] })
}

// example is a column to compare by, for refusals.
func (t *table) example() string {
	required := t.first(func(c *column) bool { return c.numeric() && c.required })
	if c := cmp.Or(required, t.first((*column).numeric)); c != nil {
		return spaced(c.Name)
	}
	return "value"
}
