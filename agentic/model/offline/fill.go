package offline

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// arguments are what a request says of the input of a skill.
type arguments struct {
	input   map[string]any
	used    []bool
	values  map[int]string // name=value for the words that were taken as values
	missing []string       // required, and not said
	problem string         // what to type where some are missing
}

// fill finds the input of a skill in the words of a request. An argument is
// written as name=value, or it is the only value of its type: of two texts for
// three arguments nothing is guessed. given is the result of an earlier step.
func fill(s skill, ws []word, given json.RawMessage) arguments {
	a := arguments{input: map[string]any{}, used: make([]bool, len(ws)), values: map[int]string{}}
	in := readSchema(s.InputSchema)
	rows := rowsOf(given)
	unsaid := map[string][]string{} // required arguments by the kind of their values
	for _, name := range in.members() {
		p := in.Properties[name].resolve(in)
		switch required := slices.Contains(in.Required, name); {
		case a.written(name, p, ws):
		case len(rows) == 1 && rows[0][name] != nil:
			a.input[name] = rows[0][name]
		case required && p.Default != nil:
			a.input[name] = p.Default
		case required:
			kind := strings.Replace(p.kind(), "integer", "number", 1)
			if c := (column{Name: name}); kind == "string" && c.identifies() {
				kind = "identifier"
			}
			unsaid[kind] = append(unsaid[kind], name)
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(unsaid)) { // identifiers before other texts
		a.only(kind, unsaid[kind], ws)
	}
	slices.Sort(a.missing)
	if len(a.missing) > 0 && len(given) > 0 && len(rows) != 1 {
		a.problem = fmt.Sprintf("%s needs one %s, and the earlier step found %d.", s.Name, spaced(a.missing[0]), len(rows))
	} else if len(a.missing) > 0 {
		a.problem = fmt.Sprintf("%s needs %s, and the request does not say it. Write for example %q.", s.Name, quoted(a.missing), a.missing[0]+"=…")
	}
	return a
}

// written takes name=value.
func (a *arguments) written(name string, p *schema, ws []word) bool {
	i := slices.IndexFunc(ws, func(w word) bool { return w.key == name })
	if i < 0 {
		return false
	}
	var v any = ws[i].text
	if p.kind() == "string" || json.Unmarshal([]byte(ws[i].text), &v) == nil {
		a.input[name], a.used[i] = v, true
	}
	return a.used[i]
}

// rowsOf reads a result as rows.
func rowsOf(result json.RawMessage) []map[string]any {
	var rows []map[string]any
	var one map[string]any
	if json.Unmarshal(result, &rows) != nil && json.Unmarshal(result, &one) == nil && one != nil {
		return []map[string]any{one}
	}
	return rows
}

// only gives arguments the values of their kind, where there are as many.
func (a *arguments) only(kind string, names []string, ws []word) {
	var at []int
	for i, w := range ws {
		digits := strings.ContainsAny(w.text, "0123456789")
		if !a.used[i] && w.key == "" && (kind == "number" && w.isNumber || w.isName && (kind == "string" || kind == "identifier" && digits)) {
			at = append(at, i)
		}
	}
	if len(at) != len(names) {
		a.missing = append(a.missing, names...)
		return
	}
	for k, name := range names {
		i := at[k]
		if a.input[name] = ws[i].text; kind == "number" {
			a.input[name] = ws[i].number
		}
		if !strings.Contains(ws[i].text, `"`) {
			a.values[i] = name + `="` + ws[i].text + `"`
		}
		for j := max(i-1, 0); j <= i+1 && j < len(ws); j++ { // the value, and a word beside it that is the argument's name
			a.used[j] = a.used[j] || j == i || slices.Contains(stems(name), ws[j].stem)
		}
	}
}

// explicit is the request with name=value for what was taken as a value, so that
// whoever reads it again takes nothing else for it.
func (a *arguments) explicit(request string, ws []word) string {
	out, end := "", 0
	for i, w := range ws {
		if v := a.values[i]; v != "" {
			out, end = out+request[end:w.begin]+v, w.end
		}
	}
	return out + request[end:]
}
