package model

import (
	"fmt"
	"slices"
	"strings"
)

// field is a leaf of the records of some data: what a question can ask for.
type field struct {
	column string   // how results name it
	path   []string // members from the record to the leaf; none where records are bare values
	node   *node
	name   []string // stems of the member's name
	title  []string // stems of its title
	about  map[string]bool
}

func (f *field) numeric() bool {
	return f.node.is("number", "integer") && !f.node.is("string", "boolean")
}

func (f *field) text() bool    { return f.node.is("string") && !f.node.is("number", "integer", "boolean") }
func (f *field) boolean() bool { return f.node.is("boolean") && len(f.node.types) == 1 }
func (f *field) scalar() bool  { return !f.node.is("array", "object") }

// id reports whether the field identifies a record rather than measures it.
func (f *field) id() bool {
	return overlaps(f.name, idWords) || len(f.title) > 0 && idWords[f.title[len(f.title)-1]]
}

// when reports whether the field holds a point in time.
func (f *field) when() bool {
	return f.node.format == "date" || f.node.format == "date-time" || f.about["when"] || overlaps(f.name, timeWords)
}

func (f *field) where() bool {
	return f.text() && !f.when() && (overlaps(f.name, placeWords) || overlaps(f.title, placeWords) || f.about["where"])
}

// shape is the shorthand of the field's type, empty for any. known says that
// null was filtered out.
func (f *field) shape(known bool) string {
	if f.node.nullable && !known {
		return ""
	}
	return shapeOf(f.node)
}

func shapeOf(n *node) string {
	if len(n.types) != 1 {
		if len(n.types) == 2 && n.is("integer") && n.is("number") {
			return "number"
		}
		return ""
	}
	switch t := n.types[0]; t {
	case "string", "number", "integer", "boolean":
		return t
	case "array":
		if n.items != nil && !n.items.nullable && n.items.is("string", "number", "integer", "boolean") {
			if s := shapeOf(n.items); s != "" {
				return "array<" + s + ">"
			}
		}
	}
	return ""
}

// records is where the rows of some data are and what is in them.
type records struct {
	path   []string // members from the document to the array, or to the one object
	list   bool
	fields []*field
	about  map[string]bool // stems of the names and titles on the way
}

// findRecords looks for the array of records in a document: the one with the
// most fields, the outermost of equals. A document without one is itself the
// only record, or a list of bare values.
func findRecords(n *node) records {
	best, found := records{}, false
	var walk func(n *node, path []string, about []string)
	walk = func(n *node, path []string, about []string) {
		about = append(slices.Clone(about), append(split(n.title), descStems(n.desc)...)...)
		if n.items != nil {
			r := newRecords(n.items, path, true, append(about, split(n.items.title)...))
			if len(r.fields) > 0 && (!found || len(r.fields) > len(best.fields)) {
				best, found = r, true
			}
			return
		}
		for _, p := range n.props {
			walk(p.node, append(slices.Clone(path), p.name), append(about, split(p.name)...))
		}
	}
	walk(n, nil, nil)
	single := newRecords(n, nil, false, nil)
	if !found || len(best.fields) == 1 && len(best.fields[0].path) == 0 && len(single.fields) > 1 {
		return single
	}
	return best
}

func newRecords(n *node, path []string, list bool, about []string) records {
	r := records{path: path, list: list, about: map[string]bool{}}
	for _, s := range append(about, split(n.title)...) {
		r.about[s] = true
	}
	r.leaves(n, nil)
	r.nameColumns()
	return r
}

// leaves collects the leaf members, at most four levels down. Arrays of bare
// values are leaves; arrays of objects would be records of their own.
func (r *records) leaves(n *node, path []string) {
	switch {
	case n.fixed || len(path) > 4 || len(r.fields) >= 200:
	case len(n.props) > 0:
		for _, p := range n.props {
			r.leaves(p.node, append(slices.Clone(path), p.name))
		}
	case n.is("object"):
	case n.is("array") && (n.items == nil || len(n.items.props) > 0):
	case len(path) == 0 && !n.is("string", "number", "integer", "boolean"):
	default:
		r.fields = append(r.fields, newField(path, n))
	}
}

func newField(path []string, n *node) *field {
	f := &field{path: path, node: n, title: split(n.title), about: map[string]bool{}}
	if len(path) > 0 {
		f.name = split(path[len(path)-1])
	}
	for _, s := range descStems(n.desc) {
		f.about[s] = true
	}
	return f
}

func descStems(text string) []string {
	var out []string
	for _, w := range words(text) {
		if base, ok := asComparative(w); ok {
			out = append(out, stem(base))
		}
		if s, ok := asSuperlative(w); ok && !s.generic {
			out = append(out, stem(s.base))
			continue
		}
		if w.stem == "when" || w.stem == "wher" {
			out = append(out, w.lower)
		}
		if w.quoted || !stop[w.stem] && !w.isNum {
			out = append(out, w.stem)
		}
	}
	return out
}

// nameColumns gives each field the name under which results show it: the title
// where that is an identifier, else the member's name. Where two fields want
// one name the outer one has it and the other is named with its parent.
func (r *records) nameColumns() {
	order := slices.Clone(r.fields)
	slices.SortStableFunc(order, func(a, b *field) int { return len(a.path) - len(b.path) })
	taken := map[string]bool{}
	for _, f := range order {
		name := "value"
		if len(f.path) > 0 {
			name = f.path[len(f.path)-1]
		}
		if identifier(f.node.title) {
			name = f.node.title
		}
		name = asIdentifier(name)
		if taken[name] && len(f.path) > 1 {
			name = asIdentifier(f.path[len(f.path)-2] + "_" + name)
		}
		for base, i := name, 2; taken[name]; i++ {
			name = fmt.Sprintf("%s_%d", base, i)
		}
		taken[name], f.column = true, name
	}
}

// identifier reports whether a title can be a column: [a-z][a-z0-9_]*.
func identifier(s string) bool {
	for i, c := range s {
		if (c < 'a' || c > 'z') && (i == 0 || (c < '0' || c > '9') && c != '_') {
			return false
		}
	}
	return s != "" && len(s) <= 64
}

// asIdentifier makes any member name fit for a shape.
func asIdentifier(s string) string {
	out := strings.Map(func(c rune) rune {
		if c < 128 && alnum(c) || c == '_' {
			return c
		}
		return '_'
	}, s)
	if out == "" || out[0] >= '0' && out[0] <= '9' {
		out = "_" + out
	}
	return out[:min(len(out), 64)]
}

func (r *records) field(column string) *field {
	for _, f := range r.fields {
		if f.column == column {
			return f
		}
	}
	return nil
}

func overlaps(list []string, in map[string]bool) bool {
	return slices.ContainsFunc(list, func(s string) bool { return in[s] })
}
