package offline

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// query is a request to one table. As JSON it is the parameter of the script that answers it.
type query struct {
	Path    []string    `json:"path"` // from the document to the records
	Where   []condition `json:"where"`
	Count   bool        `json:"count"`
	By      *column     `json:"by"` // the column that orders the records; nil: none
	Asc     bool        `json:"asc"`
	Limit   int         `json:"limit"`   // 0: none
	Columns []*column   `json:"columns"` // to return
}

// condition selects the records of which one of the columns compares with the value by Op, as
// matches of query.py defines it.
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
	t        *table
	op       string   // a comparison whose number is still to come
	sorting  bool     // the column to sort by is still to come
	not      bool     // the value that is not meant is still to come
	extreme  bool     // only the first of the order is wanted
	ordered  bool     // a direction is said
	singular bool     // one record is asked for
	named    []string // columns without another meaning
	unknown  []word
	input    map[string]any // of the skill
	score    int            // how much of the request the table's own words explain
	problem  string         // why the table does not answer the request; empty: it does
}

// phrases are phrases of the language with their meaning. A phrase with an empty meaning is
// skipped.
var phrases = map[string]string{
	"how many": "count", "number of": "count", "count": "count",
	"more than": "over", "over": "over", "above": "over", "at least": "at least",
	"less than": "under", "fewer than": "under", "under": "under", "below": "under", "at most": "at most",
	"highest": "largest", "largest": "largest", "most": "largest", "top": "largest",
	"lowest": "smallest", "smallest": "smallest", "least": "smallest", "fewest": "smallest",
	"highest first": "descending", "descending": "descending", "descending order": "descending",
	"lowest first": "ascending", "ascending": "ascending", "ascending order": "ascending",
	"by": "by", "sorted by": "by", "ordered by": "by", "ranked by": "by", "sort": "", "rank": "", "not": "not",
}

// readFor reads a request as one to a skill.
func readFor(s skill, request string) *reading {
	ws := words(request)
	r := &reading{t: tableOf(s, named(s.Name, request))}
	r.Path = r.t.path
	for i := 0; i < len(ws); {
		i += r.take(ws[i:])
	}
	input, problem := arguments(s, ws)
	r.input, r.problem = input, cmp.Or(problem, r.problem)
	r.finish(len(ws) > 0 && ws[0].lower == "which")
	return r
}

func (r *reading) fail(format string, args ...any) {
	r.problem = cmp.Or(r.problem, fmt.Sprintf(format, args...))
}

// take consumes the next words of a request, and returns their number.
func (r *reading) take(ws []word) int {
	w := ws[0]
	if w.key != "" { // an argument is nothing else
		return 1
	}
	if n := r.phrase(ws); n > 0 {
		return n
	}
	if !w.isName && !w.isNumber && r.t.nouns[w.stem] {
		r.score += 2
		r.singular = r.singular || w.lower == w.stem
		for _, c := range r.t.columns { // records of that kind, if they have several
			if i := slices.IndexFunc(c.values, func(v string) bool { return slices.Equal(stems(v), []string{w.stem}) }); i >= 0 {
				r.where(condition{[]*column{c}, "is", c.values[i]})
			}
		}
		return 1
	}
	if n := r.declared(ws); n > 0 {
		r.score++
		return n
	}
	base, est := strings.CutSuffix(w.lower, "est")
	switch {
	case est && base != "" && r.t.measure(base) != nil:
		r.By, r.extreme = r.t.measure(base), true
	case w.isNumber && r.op != "":
		r.where(condition{Op: r.op, Value: w.number})
		r.op = ""
	case w.isNumber && r.Limit == 0 && w.number >= 1 && w.number == float64(int(min(w.number, 1e6))):
		r.Limit = int(w.number)
	case r.t.speaks[w.stem]:
		r.score++
	case w.isName:
		texts := slices.DeleteFunc(slices.Clone(r.t.columns), func(c *column) bool { return c.typ != "string" || len(c.values) > 0 })
		if len(texts) == 0 {
			r.unknown = append(r.unknown, w)
		} else {
			r.where(condition{texts, "mentions", w.text})
		}
	case !stop[w.lower]:
		r.unknown = append(r.unknown, w)
	}
	return 1
}

// phrase consumes a phrase of the language; 0: there is none.
func (r *reading) phrase(ws []word) int {
	for n := min(2, len(ws)); n > 0; n-- {
		said := ws[0].lower
		if n == 2 {
			said += " " + ws[1].lower
		}
		meaning, ok := phrases[said]
		switch {
		case !ok || r.t.nouns[ws[0].stem]:
			continue
		case meaning == "count":
			r.Count = true
		case meaning == "largest" || meaning == "smallest":
			r.extreme, r.Asc = true, meaning == "smallest"
		case meaning == "ascending" || meaning == "descending":
			r.ordered, r.Asc = true, meaning == "ascending"
		case meaning == "by":
			r.sorting = true
		case meaning == "not":
			r.not = true
		case meaning != "":
			r.op = meaning
		}
		return n
	}
	return 0
}

// declared consumes the name of a column, or a value that a column declares; 0: there is none.
func (r *reading) declared(ws []word) (n int) {
	var named *column
	var value any
	for _, c := range r.t.columns {
		for _, phrase := range c.phrases {
			if len(phrase) > n && begins(ws, phrase) {
				named, value, n = c, nil, len(phrase)
			}
		}
		for _, v := range c.values {
			if of := stems(v); len(of) > n && begins(ws, of) {
				named, value, n = c, v, len(of)
			}
		}
	}
	if named != nil && named.typ == "boolean" {
		value = true
	}
	switch {
	case named == nil:
	case value != nil:
		r.where(condition{[]*column{named}, map[bool]string{false: "is", true: "is not"}[r.not], value})
		r.not = false
	case r.sorting:
		r.By, r.sorting, r.Asc = named, false, r.Asc || !r.extreme
	case !slices.Contains(r.named, named.Name):
		r.named = append(r.named, named.Name)
	}
	return n
}

// where adds a condition, of which there may be one of a kind.
func (r *reading) where(c condition) {
	if slices.ContainsFunc(r.Where, func(d condition) bool { return d.Op == c.Op }) {
		r.fail("One request has one condition of a kind.")
	}
	r.Where = append(r.Where, c)
}

// measured consumes the column of numbers that is named, or the only one.
func (r *reading) measured() *column {
	for i, name := range r.named {
		if c := r.t.first(func(c *column) bool { return c.Name == name }); c.numeric() {
			r.named = slices.Delete(r.named, i, i+1)
			return c
		}
	}
	return r.t.measure("")
}

// finish determines what is left open, and finds what no rule explains.
func (r *reading) finish(which bool) {
	for i, c := range r.Where {
		if len(c.Columns) == 0 {
			r.Where[i].Columns = []*column{r.measured()}
		}
	}
	if r.extreme && r.By == nil {
		r.By = r.measured()
	}
	compared := []*column{r.By}
	for _, c := range r.Where {
		if c.Op != "mentions" {
			compared = append(compared, c.Columns[0])
		}
	}
	var unknown []string
	for _, w := range r.unknown {
		if !slices.ContainsFunc(compared, func(c *column) bool { return c != nil && c.about[w.stem] }) {
			unknown = append(unknown, w.text)
		}
	}
	switch {
	case len(unknown) > 0:
		r.fail("%s does not say what %s means here.", r.t.skill, quoted(unknown))
	case r.score == 0:
		r.fail("%s has to do with something else.", r.t.skill)
	case len(r.t.columns) == 0 && !r.plain():
		r.fail("%s does not return records that could be counted or compared.", r.t.skill)
	case r.extreme && r.By == nil:
		r.fail("%s does not say what is measured. Name what is to be compared, such as %q.", r.t.skill, "the highest "+r.t.example())
	case r.op != "" || r.sorting || r.not || slices.Contains(compared[1:], nil) || r.ordered && (r.By == nil || r.extreme):
		r.fail("%s does not say what is compared.", r.t.skill)
	case r.Count && (len(r.named) > 0 || r.extreme || r.Limit > 0):
		r.fail("%s returns %s, and only those can be counted.", r.t.skill, r.t.plural)
	case which && len(r.named) > 0 && !r.extreme:
		r.fail("%s does not say which %s are meant.", r.t.skill, r.t.plural)
	case len(r.t.columns) > 0:
		r.selected()
	}
}

// selected determines the columns to return: all, or for extremes the one that is named, or that
// identifies the records, and the one that they are compared by.
func (r *reading) selected() {
	if r.Columns = r.t.columns; !r.extreme {
		return
	}
	r.Columns = slices.DeleteFunc(slices.Clone(r.t.columns), func(c *column) bool { return !slices.Contains(r.named, c.Name) })
	if len(r.Columns) == 0 {
		r.Columns = []*column{r.t.label()}
	}
	if !slices.Contains(r.Columns, r.By) {
		r.Columns = append(r.Columns, r.By)
	}
	if r.singular && r.Limit == 0 {
		r.Limit = 1
	}
}

// arguments reads the input of a skill from the words of a request, each written as name=value,
// and reports missing or unknown arguments.
func arguments(s skill, ws []word) (input map[string]any, problem string) {
	input = map[string]any{}
	in := readSchema(s.InputSchema)
	for _, w := range ws {
		p := in.Properties[w.key]
		var v any = w.text
		switch {
		case w.key == "":
			continue
		case p == nil:
			return nil, fmt.Sprintf("%s has no argument %q.", s.Name, w.key)
		case p.resolve(in).kind() != "string" && json.Unmarshal([]byte(w.text), &v) != nil:
			return nil, fmt.Sprintf("%s cannot take %q as %s.", s.Name, w.text, w.key)
		}
		input[w.key] = v
	}
	for _, name := range in.Required {
		if input[name] == nil {
			return nil, fmt.Sprintf("%s needs %q, and the request does not say it. Write for example %q.", s.Name, name, name+"=…")
		}
	}
	return input, ""
}

// shape returns the return_spec of the answer.
func (r *reading) shape() string {
	switch {
	case len(r.t.columns) == 0:
		return "any"
	case r.Count:
		return "{count: integer}"
	}
	return "array<" + r.record() + ">"
}

// record returns the columns in the notation of a return_spec.
func (r *reading) record() string {
	var members []string
	for _, c := range r.Columns {
		member := c.Name + ": " + c.typ
		if c != r.By { // records without it have no place in the order
			member += "|null"
		}
		members = append(members, member)
	}
	return "{" + strings.Join(members, ", ") + "}"
}

// program answers any query; see its beginning for the parameter.
//
//go:embed query.py
var program string

// script writes the query for the fixed program.
func (r *reading) script() string {
	parameter, _ := json.Marshal(r.query)         // plain data
	literal, _ := json.Marshal(string(parameter)) // a JSON text is a Python text
	return fmt.Sprintf("QUERY = %s\n\n%s", literal, program)
}
