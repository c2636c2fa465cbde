package model

import (
	"fmt"
	"slices"
	"strings"
)

// writeScript generates the Python script that answers a step from a file. It
// uses the standard library only, sorts stably (the order of the data decides
// ties) and prints exactly the members of the return spec.
func writeScript(in ScriptInput) ScriptOutput {
	src := &source{records: dataRecords(in), entity: map[string]bool{}, about: map[string]bool{}}
	q, ok := readQuery(in.Task)
	if !ok {
		q = readStep(src, in.Task, in.UserTask)
	}
	s := &script{src: src, q: q, want: readSchema(in.Schema), narrow: in.Error != "", brief: strings.Contains(strings.ToLower(in.Error), "oversize")}
	return ScriptOutput{s.text(in.Format)}
}

// script is one Python program in the making.
type script struct {
	src     *source
	q       query
	want    *node
	narrow  bool // an earlier script failed: leave out rows that cannot be returned
	brief   bool // its output was too large: required members only, long texts cut
	b       strings.Builder
	missing string
}

func (s *script) line(format string, args ...any) {
	fmt.Fprintf(&s.b, format+"\n", args...)
}

func (s *script) text(format string) string {
	s.load(format)
	s.line("rows = walk(data%s)", pathArgs(s.src.records.path))
	s.line("if not isinstance(rows, list):\n    rows = [rows]")
	if s.narrow && len(s.src.records.fields) > 0 && len(s.src.records.fields[0].path) > 0 {
		s.line("rows = [r for r in rows if isinstance(r, dict)]")
	}
	s.filter()
	if !s.q.arrange && s.q.fold == foldNone {
		s.sort()
		s.take()
	}
	s.result()
	if s.missing != "" {
		return fmt.Sprintf("raise SystemExit(%s)\n", pyString("the data has no field for "+s.missing))
	}
	s.line("print(json.dumps(out, ensure_ascii=False, allow_nan=False))")
	return withHelpers(s.b.String())
}

func (s *script) load(format string) {
	s.line(`with open(input_file, encoding="utf-8") as f:`)
	if format == "jsonl" {
		s.line("    data = [json.loads(line) for line in f if line.strip()]")
		return
	}
	s.line("    data = json.load(f)")
}

func pathArgs(path []string) string {
	out := ""
	for _, p := range path {
		out += ", " + pyString(p)
	}
	return out
}

// pyString is a Python literal: JSON strings are one.
func pyString(s string) string { return quoteJSON(s) }

// value is the Python expression for a field of r.
func value(f *field) string {
	if len(f.path) == 0 {
		return "r"
	}
	return "get(r" + pathArgs(f.path) + ")"
}

func (s *script) field(column string) *field {
	f := s.src.records.field(column)
	if f == nil {
		f = s.alike(column)
	}
	if f == nil && s.missing == "" {
		s.missing = column
	}
	return f
}

// alike finds the field that a column of another planner's words means.
func (s *script) alike(column string) *field {
	for _, f := range s.src.records.fields {
		if len(f.path) > 0 && strings.EqualFold(f.path[len(f.path)-1], column) {
			return f
		}
	}
	var found *field
	best := 0
	for _, f := range s.src.records.fields {
		fit := 0
		for _, w := range split(column) {
			fit += f.fit(w)
		}
		if fit > best {
			found, best = f, fit
		}
	}
	return found
}

// sort keeps the rows that have a comparable value and orders them. reverse
// keeps the order of equal rows, so ties stay in the order of the data.
func (s *script) sort() {
	if s.q.by == "" {
		return
	}
	f := s.field(s.q.by)
	if f == nil {
		return
	}
	v := value(f)
	switch {
	case f.numeric():
		s.line("rows = [r for r in rows if is_number(%s)]", v)
		s.line("rows.sort(key=lambda r: %s%s)", v, s.reverse())
	case f.text():
		s.line("rows = [r for r in rows if isinstance(%s, str)]", v)
		s.line("rows.sort(key=lambda r: %s.casefold()%s)", v, s.reverse())
	default:
		s.line("rows = [r for r in rows if %s is not None]", v)
		s.line("rows.sort(key=lambda r: (is_number(%s), %s if is_number(%s) else 0, str(%s))%s)", v, v, v, v, s.reverse())
	}
}

func (s *script) reverse() string {
	if s.q.asc {
		return ""
	}
	return ", reverse=True"
}

func (s *script) take() {
	if s.q.limit > 0 {
		s.line("rows = rows[:%d]", s.q.limit)
	}
}

// result builds out to the return spec: a list of objects, a list of values,
// one object or one value.
func (s *script) result() {
	if s.q.fold == foldNone && s.countWanted() {
		s.q.fold = foldCount
	}
	switch {
	case s.want.is("array") && s.want.items != nil && len(s.want.items.props) > 0:
		s.rows(s.want.items)
	case s.want.is("array"):
		s.list()
	case len(s.want.props) > 0 && s.q.fold != foldNone && len(s.q.per) == 0:
		s.folded()
		s.line("out = {%s: value}", pyString(s.foldMember()))
	case len(s.want.props) == 1 && s.want.props[0].node.is("array"):
		s.nested()
	case len(s.want.props) > 0:
		s.rows(s.want)
		s.line("if not out:\n    raise SystemExit(\"no record matches\")\nout = out[0]")
	case s.q.fold != foldNone && s.want.is("number", "integer", "string"):
		s.folded()
		s.line("out = %s", coerced("value", s.want))
	case s.want.is("number", "integer", "string", "boolean"):
		s.one()
	default:
		s.line("out = rows")
	}
}

// countWanted recognises a return spec that a count alone can meet.
func (s *script) countWanted() bool {
	if len(s.want.props) == 1 && s.want.props[0].name == "count" {
		return s.src.records.field("count") == nil
	}
	return s.want.is("integer") && s.q.limit == 0 && len(s.q.columns) == 0
}

// foldMember is the member of the return spec that takes the folded value.
func (s *script) foldMember() string {
	names := make([]string, len(s.want.props))
	for i, p := range s.want.props {
		names[i] = p.name
	}
	if slices.Contains(names, s.q.foldColumn()) {
		return s.q.foldColumn()
	}
	return names[0]
}

func (s *script) nested() {
	name, outer := s.want.props[0].name, s.want
	s.want = outer.props[0].node
	s.result()
	s.want = outer
	s.line("out = {%s: out}", pyString(name))
}

// one takes a single value from the first row.
func (s *script) one() {
	column := ""
	if len(s.q.columns) > 0 {
		column = s.q.columns[len(s.q.columns)-1]
	}
	f := s.src.records.field(column)
	if f == nil {
		s.line("out = %s", coerced("data", s.want))
		return
	}
	s.line("if not rows:\n    raise SystemExit(\"no record matches\")\nr = rows[0]\nout = %s", coerced(value(f), s.want))
}

// coerced converts between the representations of one value: what the data
// holds and what the return spec declares.
func coerced(expr string, n *node) string {
	switch {
	case len(n.types) != 1:
		return expr
	case n.is("string"):
		return "(lambda v: v if isinstance(v, str) else json.dumps(v, ensure_ascii=False))(" + expr + ")"
	case n.is("integer"):
		return "int(" + expr + ")"
	case n.is("number"):
		return "(lambda v: v if is_number(v) else float(v))(" + expr + ")"
	}
	return expr
}
