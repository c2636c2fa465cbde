package offline

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"aob.dev/writ/intents/catalog"
)

// reading is a request, as far as it is understood as a query of one table.
type reading struct {
	query
	t       *table
	ws      []word
	used    []bool
	score   int                // how much of the request the table's own words explain
	problem string             // why the table does not answer the request; empty: it does
	steps   []catalog.PlanStep // that answer it, without numbers, each but the first after the one before it
	sorted  bool               // all records are wanted, in an order
	extreme int                // where the word is by which only the first of an order are wanted; -1: nowhere
}

// read understands the words of a request that are not used yet. Each method
// below takes the words of one form.
func read(t *table, ws []word, used []bool) *reading {
	r := &reading{t: t, ws: ws, used: make([]bool, len(ws)), extreme: -1}
	for i, w := range ws {
		r.used[i] = w.key != "" || i < len(used) && used[i] // arguments
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
	return i >= 0 && i < len(r.ws) && !r.ws[i].isName && !r.ws[i].isNumber && r.t.nouns[r.ws[i].stem]
}

// mention is a column and where it is named, by how many words.
type mention struct {
	*column
	at, n int
}

// mention finds the column that is named at i, and by how many words.
func (r *reading) mention(i int, want func(*column) bool) (best *column, n int) {
	for _, c := range r.t.columns {
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

// near finds a column of numbers that is named by one of the words at from and the
// next ones.
func (r *reading) near(from, words int) mention {
	for i := max(from, 0); i < from+words && i < len(r.ws); i++ {
		if c, n := r.mention(i, (*column).numeric); c != nil {
			return mention{c, i, n}
		}
	}
	return mention{}
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
		r.Fold = "count"
		for k := i + n; k < len(r.ws); k++ {
			if c, _ := r.mention(k, func(c *column) bool { return c.typ != "boolean" }); r.noun(k) {
				return
			} else if c != nil {
				break
			}
		}
		r.fail("%s returns %s, and only those can be counted.", r.t.skill, r.t.plural)
		return
	}
}

// folds reads "total revenue" and "the average order amount".
func (r *reading) folds() {
	for i := range r.ws {
		fold := map[string]string{"total": "total", "sum": "total", "average": "average", "mean": "average"}[r.lower(i)]
		of := r.near(i+1, 4)
		if fold == "" || of.column == nil {
			continue
		}
		if r.Fold != "" {
			r.fail("One request asks for one number.")
		}
		r.use(i, 1)
		r.use(of.at, of.n)
		r.Fold, r.Of = fold, of.column
	}
}

// comparing are the words ahead of a number.
var comparing = map[string]string{
	"more than": "over", "over": "over", "above": "over", "at least": "at least",
	"less than": "under", "fewer than": "under", "under": "under", "below": "under", "at most": "at most",
}

// comparisons reads "over 140 euros" and "a magnitude above 5".
func (r *reading) comparisons() {
	for i := range r.ws {
		for phrase, op := range comparing { // of which one fits at most
			value := i + strings.Count(phrase, " ") + 1
			if r.says(i, strings.Fields(phrase)) && value < len(r.ws) && r.ws[value].isNumber {
				r.compare(i, value, op)
			}
		}
	}
}

// compare keeps what compares so with the number at value; the words from begin
// on say so. The column is named beside them, or it is the only one of numbers,
// or the only one whose description has the unit.
func (r *reading) compare(begin, value int, op string) {
	of := cmp.Or(r.near(value+1, 2), r.near(begin-2, 2))
	if unit := value + 1; of.column == nil && unit < len(r.ws) && r.ws[unit].content() {
		of = mention{r.t.measuredBy(r.ws[unit].stem), unit, 1}
	} else if of.column == nil {
		of.column = r.t.only(func(*column) bool { return true })
	}
	if of.column == nil {
		r.fail("%s does not say what is compared with %q.", r.t.skill, r.ws[value].text)
		return
	}
	r.use(begin, value-begin+1)
	r.use(of.at, of.n)
	r.Where = append(r.Where, condition{[]*column{of.column}, op, r.ws[value].number})
}

var (
	largest  = set("highest largest biggest greatest most top")
	smallest = set("lowest smallest least fewest")
	sorting  = set("sort sorted ordered rank ranked")
)

func extreme(w word) bool { return largest[w.lower] || smallest[w.lower] }

// order reads "the highest revenue", "the strongest", "the top 2 by seats", and
// for all records "sorted by seats in ascending order".
func (r *reading) order() {
	by := r.by()
	for i, w := range r.ws {
		base, est := strings.CutSuffix(r.lower(i), "est")
		if r.lower(i) == "" || !extreme(w) && !(est && r.t.measuredBy(base) != nil) || r.lower(i+1) == "first" {
			continue
		}
		of := cmp.Or(by, r.near(i+1, 3))
		if of.column == nil && !extreme(w) {
			of.column = r.t.measuredBy(base)
		} else if of.column == nil && w.lower != "most" && w.lower != "fewest" {
			of.column = r.t.only(func(*column) bool { return true })
		}
		if of.column == nil || r.Fold != "" {
			r.fail("%s does not say what %q is measured by. Name what is to be compared, such as %q.", r.t.skill, w.text, "the highest "+r.t.example())
			continue
		}
		r.use(i, 1)
		r.use(of.at, of.n)
		r.By, r.Asc, r.extreme = of.column, smallest[w.lower], i
		return
	}
	if by.column != nil && r.Fold == "" {
		r.use(by.at, by.n)
		r.By, r.Asc, r.sorted = by.column, true, true
		r.direction()
	}
}

// by reads "by seats".
func (r *reading) by() mention {
	for i := range r.ws {
		if c, n := r.mention(i+1, nil); c != nil && r.lower(i) == "by" {
			return mention{c, i, n + 1}
		}
	}
	return mention{}
}

// direction reads "in descending order" and "highest first" beside a column that orders.
func (r *reading) direction() {
	for i, w := range r.ws {
		switch next := r.lower(i + 1); {
		case r.lower(i) == "":
		case extreme(w) && next == "first":
			r.Asc = smallest[w.lower]
			r.use(i, 2)
		case w.lower == "descending", w.lower == "ascending":
			r.Asc = w.lower == "ascending"
			r.use(i, 1)
			if next == "order" {
				r.use(i+1, 1)
			}
		case sorting[w.lower]:
			r.use(i, 1)
		}
	}
}

// limit reads how many records are wanted: a number ahead of the noun or of a
// column, or beside the word for the extreme; or one, where an extreme is asked
// for and the noun is singular.
func (r *reading) limit() {
	for i, w := range r.ws {
		n := int(min(w.number, 1e6))
		c, _ := r.mention(i+1, nil)
		counts := r.noun(i+1) || r.extreme >= 0 && (c != nil || i == r.extreme-1 || i == r.extreme+1)
		if counts && n >= 1 && float64(n) == w.number && !r.used[i] && r.Fold == "" {
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
				r.Per = append(r.Per, c)
			}
		}
	}
}

// values reads the values that columns declare, "open" or "not open", and
// columns that are true or false, "paid" or "not paid".
func (r *reading) values() {
	for i := range r.ws {
		not := r.lower(i-1) == "not"
		c, n := r.mention(i, func(c *column) bool { return c.typ == "boolean" })
		where := condition{[]*column{c}, "is", !not}
		for _, of := range r.t.columns {
			for _, v := range of.values {
				if phrase := stems(v); c == nil && len(phrase) > 0 && r.says(i, phrase) {
					c, n = of, len(phrase)
					where = condition{[]*column{of}, map[bool]string{false: "is", true: "is not"}[not], v}
				}
			}
		}
		if c == nil {
			continue
		}
		if r.use(i, n); not {
			r.use(i-1, 1)
		}
		r.Where = append(r.Where, where)
	}
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
		if c != nil && next < len(r.ws) && !r.used[next] && r.ws[next].isName && (!c.identifies() || strings.ContainsAny(r.ws[next].text, "0123456789")) {
			r.use(i, n+1)
			r.Where = append(r.Where, condition{[]*column{c}, "is", r.ws[next].text})
			continue
		}
		if own, _ := r.mention(i, nil); r.used[i] || !w.isName || own != nil || r.t.nouns[w.stem] || r.t.speaks[w.stem] {
			continue
		}
		texts := slices.DeleteFunc(slices.Clone(r.t.columns), func(c *column) bool { return c.typ != "string" || len(c.values) > 0 })
		if foreign != nil || len(texts) == 0 || slices.ContainsFunc(r.Where, func(c condition) bool { return c.Op == "mentions" }) {
			r.fail("%s does not know what to do with %q.", r.t.skill, w.text)
			return
		}
		r.use(i, 1)
		r.Where = append(r.Where, condition{texts, "mentions", w.text})
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
		if r.use(i, n); !slices.Contains(r.columns, c) {
			r.columns = append(r.columns, c)
		}
		others = others || !r.noun(i)
	}
	if others && r.Fold != "" {
		r.fail("One request asks for one number.")
	}
	if others && r.extreme < 0 && r.lower(0) == "which" {
		r.fail("%s does not say which %s are meant.", r.t.skill, r.t.plural)
	}
	if !others || r.sorted {
		r.columns = nil
	}
	if r.By == nil || r.sorted {
		return
	}
	if label := r.t.label(); !others && label != nil {
		r.columns = []*column{label}
	}
	if !slices.Contains(r.columns, r.By) {
		r.columns = append(r.columns, r.By)
	}
	for i, c := range r.columns { // the first of an order are records that have what is shown
		if c.nullable {
			r.Where = append(r.Where, condition{[]*column{c}, "known", nil})
			known := *c
			known.nullable = false
			r.columns[i] = &known
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
		r.fail("%s does not say what %s means here.", r.t.skill, quoted(unknown))
	case r.score == 0:
		r.fail("%s has to do with something else.", r.t.skill)
	case (len(r.t.columns) == 0 || r.t.single) && !r.plain():
		r.fail("%s does not return records that could be counted or compared.", r.t.skill)
	}
}

// described reports whether a word describes a column that the answer is about.
func (r *reading) described(w word) bool {
	about := append(slices.Concat(r.columns, r.Per), r.By, r.Of)
	for _, c := range r.Where {
		if len(c.Columns) == 1 {
			about = append(about, c.Columns[0])
		}
	}
	return slices.ContainsFunc(about, func(c *column) bool { return c != nil && c.about[w.stem] })
}

// example is a column to compare by, for refusals.
func (t *table) example() string {
	required := t.first(func(c *column) bool { return c.numeric() && c.required })
	if c := cmp.Or(required, t.first((*column).numeric)); c != nil {
		return spaced(c.Name)
	}
	return "value"
}
