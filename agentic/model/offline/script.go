package offline

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

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
	parameter, err := json.Marshal(j)
	if err != nil {
		parameter = []byte("{}") // a query is plain data
	}
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
	switch s.kind() {
	case "array":
		if j.Form, record = "list", s.Items.resolve(s); record.kind() == "object" {
			j.Form = "rows"
		}
	case "object":
		j.Form = "row"
	case "":
		j.Form = "any"
		return
	default:
		j.Form = "value"
	}
	if len(record.Properties) == 0 && record.kind() == "object" || j.Form == "list" && record.kind() == "" {
		j.Form = "any"
		return
	}
	if j.Form == "list" || j.Form == "value" {
		j.Returns = []output{j.value()}
		return
	}
	for _, name := range record.members() {
		j.Returns = append(j.Returns, j.output(t, name, record.Properties[name].resolve(s)))
	}
}

// output finds what a member of the result is: the folded value, a column, or
// the number of the row.
func (j *job) output(t *table, name string, s *schema) output {
	out := output{Name: name, Required: !s.nullable()}
	per := slices.ContainsFunc(j.Per, func(c column) bool { return c.Name == name })
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

// value finds what a bare value of the result is: the folded value, or the
// column that the task names.
func (j *job) value() output {
	switch {
	case j.Fold != "":
		return output{Required: true}
	case len(j.columns) > 0:
		return output{Name: j.columns[0].Name, From: &j.columns[0], Required: true}
	}
	return output{Name: "value", From: &column{Name: "value"}, Required: true}
}
