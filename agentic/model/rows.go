package model

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// The parts of an extraction script that turn records into results.

func (s *script) filter() {
	for _, c := range s.q.where {
		if c.column == anyText {
			s.filterAnywhere(c)
			continue
		}
		if f := s.field(c.column); f != nil {
			s.filterBy(f, c)
		}
	}
}

// filterAnywhere looks for a value in every text column, where the task did
// not say which one holds it.
func (s *script) filterAnywhere(c condition) {
	var texts []string
	for _, f := range s.src.records.fields {
		if f.text() {
			texts = append(texts, value(f))
		}
	}
	s.line("texts = lambda r: [%s]", strings.Join(texts, ", "))
	s.line("same = [r for r in rows if any(plain(v) == plain(%s) for v in texts(r))]", c.value)
	s.line("rows = same or [r for r in rows if any(mentions(v, %s) for v in texts(r) if v is not None)]", wordList(c.value))
}

func wordList(value string) string {
	var text string
	if json.Unmarshal([]byte(value), &text) != nil {
		text = value
	}
	list := []string{}
	for _, w := range strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !alnum(r) }) {
		list = append(list, pyString(w))
	}
	return "[" + strings.Join(list, ", ") + "]"
}

func (s *script) filterBy(f *field, c condition) {
	v := value(f)
	switch c.op {
	case opKnown:
		s.line("rows = [r for r in rows if %s is not None]", v)
	case opMention:
		s.mention(f, c.value)
	case opIs, opNot:
		sign := "=="
		if c.op == opNot {
			sign = "!="
		}
		if c.value == "true" || c.value == "false" {
			s.line("rows = [r for r in rows if bool(%s) %s %s]", v, sign, pyBool[c.value])
			return
		}
		s.line("rows = [r for r in rows if plain(%s) %s plain(%s)]", v, sign, c.value)
	default:
		s.compare(f, c)
	}
}

var pyBool = map[string]string{"true": "True", "false": "False"}

// mention keeps the rows whose text is the value; where there is none, those
// whose text has its words. A date also means all times of that day.
func (s *script) mention(f *field, want string) {
	v := value(f)
	if f.when() {
		s.line("rows = [r for r in rows if %s is not None and day(%s, %s) == %s]", v, v, unit(f), want)
		return
	}
	s.line("same = [r for r in rows if plain(%s) == plain(%s)]", v, want)
	s.line("rows = same or [r for r in rows if %s is not None and mentions(%s, %s)]", v, v, wordList(want))
}

var comparisonSigns = map[string]string{opOver: ">", opUnder: "<", opLeast: ">=", opMost: "<="}

func (s *script) compare(f *field, c condition) {
	v := value(f)
	if !strings.HasPrefix(c.value, `"`) {
		s.line("rows = [r for r in rows if is_number(%s) and %s %s %s]", v, v, comparisonSigns[c.op], c.value)
		return
	}
	s.line("rows = [r for r in rows if %s is not None and day(%s, %s) %s %s]", v, v, unit(f), comparisonSigns[c.op], c.value)
}

// unit is how many of a numeric time field make a second, zero for texts.
func unit(f *field) string {
	switch {
	case f.text():
		return "0"
	case f.about["millisecond"]:
		return "1000"
	}
	return "1"
}

// folded computes value over rows.
func (s *script) folded() {
	s.define(s.q.fold)
	s.line("value = fold(rows)")
	if s.q.fold != foldCount {
		s.line("if value is None:\n    raise SystemExit(\"no record matches that has a value\")")
	}
}

// define writes the fold as a function of rows. Sums are exact to what doubles
// can hold and rounded to six digits, so that 0.1 + 0.2 reads 0.3.
func (s *script) define(kind fold) {
	if kind == foldCount {
		s.line("fold = len")
		return
	}
	f := s.field(s.q.of)
	if f == nil {
		return
	}
	s.line("\ndef fold(rows):\n    values = [v for v in (%s for r in rows) if is_number(v)]", value(f))
	s.line("    if not values:\n        return %s", map[bool]string{true: "0", false: "None"}[kind == foldSum])
	s.line("    exact = all(isinstance(v, int) for v in values)")
	switch kind {
	case foldMin:
		s.line("    return min(values)\n")
	case foldMax:
		s.line("    return max(values)\n")
	case foldAverage:
		s.line("    return round(math.fsum(values) / len(values), 6)\n")
	default:
		s.line("    return sum(values) if exact else round(math.fsum(values), 6)\n")
	}
}

// list is an array of bare values.
func (s *script) list() {
	column := ""
	if out := s.q.output(); len(out) > 0 {
		column = out[0]
	}
	f := s.src.records.field(column)
	if f == nil && len(s.src.records.fields) > 0 {
		f = s.src.label()
	}
	if f == nil {
		s.line("out = rows")
		return
	}
	s.line("out = [v for v in (%s for r in rows) if v is not None]", value(f))
}

// rows is an array of objects with exactly the members of item.
func (s *script) rows(item *node) {
	if s.q.fold != foldNone && len(s.q.per) > 0 {
		s.grouped(item)
		return
	}
	var members, needed []string
	rank := false
	for _, p := range item.props {
		if s.brief && !item.required[p.name] {
			continue
		}
		f := s.src.records.field(p.name)
		if f == nil && position(p) {
			rank = true
			members = append(members, pyString(p.name)+": rank")
			continue
		}
		if f == nil {
			f = s.field(p.name)
		}
		if f == nil {
			return
		}
		members = append(members, pyString(p.name)+": "+s.projected(f, p.node))
		if len(p.node.types) > 0 && !p.node.nullable {
			needed = append(needed, value(f)+" is not None")
		}
	}
	if s.narrow && len(needed) > 0 {
		s.line("rows = [r for r in rows if %s]", strings.Join(needed, " and "))
	}
	each := "for r in rows"
	if rank {
		each = "for rank, r in enumerate(rows, 1)"
	}
	s.line("out = [{%s} %s]", strings.Join(members, ", "), each)
}

// position recognises a member that numbers the rows rather than coming from them.
func position(p prop) bool {
	return p.node.is("integer") && slices.Contains([]string{"rank", "position", "place", "number", "index", "row"}, p.name)
}

// projected is the expression for a member, converted where its declared type
// differs from the type in the data.
func (s *script) projected(f *field, n *node) string {
	v := value(f)
	same := len(n.types) == 0 || f.node.is(n.types...) || n.is("number") && f.numeric()
	if !same {
		v = fmt.Sprintf("None if %s is None else %s", v, coerced(v, n))
	}
	if s.brief && n.is("string") {
		return "(" + v + " or \"\")[:200]"
	}
	return v
}

// grouped folds the rows of each group, in the order in which groups first appear.
func (s *script) grouped(item *node) {
	var keys []string
	members := map[string]string{}
	for i, c := range s.q.per {
		f := s.field(c)
		if f == nil {
			return
		}
		keys = append(keys, value(f))
		members[c] = fmt.Sprintf("key[%d]", i)
	}
	s.define(s.q.fold)
	s.line("groups = {}\nfor r in rows:\n    groups.setdefault((%s,), []).append(r)", strings.Join(keys, ", "))
	members[s.q.foldColumn()] = "fold(group)"
	var pairs []string
	rest := slices.Clone(s.q.per)
	for _, p := range item.props {
		expr, ok := members[p.name]
		switch {
		case ok:
		case p.node.is("number", "integer"):
			expr = "fold(group)"
		case len(rest) > 0:
			expr = members[rest[0]]
		default:
			s.missing = either(s.missing, p.name)
		}
		rest = slices.DeleteFunc(rest, func(c string) bool { return members[c] == expr })
		pairs = append(pairs, pyString(p.name)+": "+expr)
	}
	s.line("out = [{%s} for key, group in groups.items()]", strings.Join(pairs, ", "))
	s.line("out = [o for o in out if None not in o.values()]")
	s.groupOrder(item)
}

func (s *script) groupOrder(item *node) {
	if s.q.by != "" && item.prop(s.q.by) != nil {
		by := pyString(s.q.by)
		s.line("out.sort(key=lambda o: o[%s]%s)", by, s.reverse())
	}
	if s.q.limit > 0 {
		s.line("out = out[:%d]", s.q.limit)
	}
}
