package offline

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"
)

// shape returns the return_spec of the answer.
func (r *reading) shape() string {
	if r.Count {
		return "{count: integer}"
	}
	columns := r.columns
	if len(columns) == 0 {
		columns = r.t.columns
	}
	var members []string
	for _, c := range columns {
		if r.extreme && c == r.By { // records without it have no place in the order
			known := *c
			known.nullable = false
			c = &known
		}
		members = append(members, c.shape())
	}
	record := "{" + strings.Join(members, ", ") + "}"
	switch {
	case len(members) == 0:
		return "any"
	case r.t.single:
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
	Form    string   `json:"form"`    // of the result: rows, row, or any for the data unchanged
	Member  string   `json:"member"`  // member with the rows; empty: they are the result
	Returns []output `json:"returns"` // members of a row
}

// output is a member of the result.
type output struct {
	Name     string  `json:"name"`
	From     *column `json:"from"`     // nil: the count
	Required bool    `json:"required"` // must not be null
}

// script writes the query for the fixed program, which produces the schema of the step.
func (r *reading) script(returned json.RawMessage) string {
	declared := r.t.first(func(c *column) bool { return len(c.Path) > 0 }) != nil
	j := job{query: r.query, Path: r.t.path, Single: r.t.single && declared, Form: "row"}
	j.result(r.t, readSchema(returned))
	parameter, _ := json.Marshal(j)               // plain data
	literal, _ := json.Marshal(string(parameter)) // a JSON text is a Python text
	return fmt.Sprintf("QUERY = %s\n\n%s", literal, program)
}

// result determines how the answer of the query produces the shape of the step.
func (j *job) result(t *table, s *schema) {
	if names := s.members(); len(names) == 1 && s.Properties[names[0]].kind() == "array" {
		j.Member = names[0]
		s = s.Properties[names[0]]
	}
	record := s
	if s.kind() == "array" {
		j.Form, record = "rows", s.Items.resolve(s)
	}
	if len(record.Properties) == 0 {
		j.Form = "any"
	}
	for _, name := range record.members() {
		out := output{Name: name, Required: !record.Properties[name].nullable()}
		if kind := record.Properties[name].kind(); !j.Count || kind != "number" && kind != "integer" {
			if out.From = t.column(name); out.From == nil {
				out.From = &column{Name: name}
			}
		}
		j.Returns = append(j.Returns, out)
	}
}
