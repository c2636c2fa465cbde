package offline

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// query is what a request asks of one table. As JSON it is the parameter of the
// script that answers it.
type query struct {
	Where []condition `json:"where"`
	Fold  string      `json:"fold"`         // count, total or average; empty: the records themselves
	Of    *column     `json:"of,omitempty"` // what is folded; none for a count
	Per   []*column   `json:"per"`
	By    *column     `json:"by,omitempty"` // what orders the records
	Asc   bool        `json:"asc"`
	Limit int         `json:"limit"`

	columns []*column // to return; none: all
}

// condition keeps the records whose column compares so with the value. Op is what
// holds of query.py calls it; "mentions" is equal to a text or, where no record is,
// containing its words.
type condition struct {
	Columns []*column `json:"columns"`
	Op      string    `json:"op"`
	Value   any       `json:"value"`
}

// plain reports whether a query asks for all records as they are.
func (q *query) plain() bool {
	return len(q.Where) == 0 && q.Fold == "" && q.By == nil && q.Limit == 0
}

// folded is how results name the folded value.
func (q *query) folded() string {
	if q.Of == nil {
		return q.Fold
	}
	return q.Fold + "_" + q.Of.Name
}

// shape is the return_spec of the answer.
func (q *query) shape(t *table) string {
	columns := q.columns
	if len(columns) == 0 {
		columns = t.columns
	}
	if q.Fold != "" {
		typ := "number"
		if q.Fold == "count" || q.Fold == "total" && q.Of.typ == "integer" {
			typ = "integer"
		}
		columns = append(slices.Clone(q.Per), &column{Name: q.folded(), typ: typ})
	}
	var members []string
	for _, c := range columns {
		members = append(members, c.Name+": "+c.shape())
	}
	record := "{" + strings.Join(members, ", ") + "}"
	switch {
	case len(members) == 0:
		return "any"
	case t.single || q.Fold != "" && len(q.Per) == 0:
		return record
	}
	return "array<" + record + ">"
}

// program answers any query; see its beginning for the parameters.
//
//go:embed query.py
var program string

// job is the parameter of the program.
type job struct {
	query
	Path    []string `json:"path"`    // from the document to the records
	Single  bool     `json:"single"`  // the document is the one record
	Form    string   `json:"form"`    // of the result: rows, list, row, value, or any for the data as it is
	Member  string   `json:"member"`  // that holds the rows or the list; empty: they are the result
	Returns []output `json:"returns"` // members of a row, or the one value
}

// output is a member of the result.
type output struct {
	Name     string  `json:"name"`
	From     *column `json:"from,omitempty"` // none: what was folded
	Position bool    `json:"position"`       // the number of the row, where the data has no such member
	Required bool    `json:"required"`       // must not be null
}

// writeScript reads the task of the step against what is declared of the data
// and writes the query for the fixed program.
func writeScript(task string, schema, dataSchema json.RawMessage) string {
	request := requestOf(task)
	t := tableOf(skill{Name: strings.TrimSuffix(task, request), OutputSchema: dataSchema})
	single := t.single && len(t.columns) > 0
	t.addShape(schema)
	j := job{query: read(t, words(request), nil).query, Path: t.path, Single: single}
	j.result(t, readSchema(schema))
	parameter, _ := json.Marshal(j)               // plain data
	literal, _ := json.Marshal(string(parameter)) // a JSON text is a Python text
	return fmt.Sprintf("QUERY = %s\n\n%s", literal, program)
}

// result says how the answer of the query fills the shape of the step.
func (j *job) result(t *table, s *schema) {
	if names := s.members(); s.kind() == "object" && len(names) == 1 && s.Properties[names[0]].kind() == "array" {
		j.Member = names[0]
		s = s.Properties[names[0]]
	}
	record := s
	j.Form = "value"
	switch s.kind() {
	case "array":
		if j.Form, record = "list", s.Items.resolve(s); record.kind() == "object" {
			j.Form = "rows"
		}
	case "object":
		j.Form = "row"
	}
	if s.kind() == "" || len(record.Properties) == 0 && record.kind() == "object" || j.Form == "list" && record.kind() == "" {
		j.Form = "any"
		return
	}
	names := record.members()
	if j.Form == "list" || j.Form == "value" {
		if names = []string{cmp.Or(j.folded(), "value")}; j.Fold == "" && len(j.columns) > 0 {
			names[0] = j.columns[0].Name
		}
	}
	for _, name := range names {
		j.Returns = append(j.Returns, j.output(t, name, cmp.Or(record.Properties[name], record).resolve(s)))
	}
}

// output finds what a member of the result is: the folded value, a column, or
// the number of the row.
func (j *job) output(t *table, name string, s *schema) output {
	out := output{Name: name, Required: !s.nullable() || j.Form == "list" || j.Form == "value"}
	per := slices.ContainsFunc(j.Per, func(c *column) bool { return c.Name == name })
	if j.Fold != "" && !per && (name == j.folded() || s.kind() == "number" || s.kind() == "integer") {
		return out
	}
	if out.From = t.column(name); out.From == nil {
		out.From = &column{Name: name}
	}
	position := slices.Contains([]string{"rank", "position", "number", "no"}, name)
	out.Position = position && s.kind() == "integer" && len(out.From.Path) == 0
	return out
}
