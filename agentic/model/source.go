package model

import "slices"

// source is a set of records that a task can be read against: the output of a
// skill, or data at hand.
type source struct {
	skill   Skill
	in      *node
	records records
	entity  map[string]bool // what one record is: the nouns of the skill's name
	about   map[string]bool // the words of the skill's declaration, its fields' descriptions apart
}

func newSource(s Skill) *source {
	src := &source{skill: s, in: readSchema(s.InputSchema), records: findRecords(readSchema(s.OutputSchema))}
	src.entity = nouns(s.Name)
	src.about = map[string]bool{}
	for _, w := range append(split(s.Name), descStems(s.Description)...) {
		src.about[w] = true
	}
	for w := range src.records.about {
		src.about[w] = true
	}
	for _, f := range src.records.fields {
		for _, w := range slices.Concat(f.name, f.title) {
			src.about[w] = true
		}
	}
	return src
}

// nouns are the things that a skill's name says it gives: "orders_for_outlet"
// gives orders, the outlet is what it wants to be given.
func nouns(name string) map[string]bool {
	out := map[string]bool{}
	for _, w := range split(name) {
		if len(out) > 0 && (w == "for" || w == "by" || w == "of" || w == "in" || w == "at" || w == "from") {
			break
		}
		if !tools[w] {
			out[w] = true
		}
	}
	return out
}

// consumes returns the required member of a skill's input that takes an array
// of objects: such a skill arranges rows instead of finding them.
func (s *source) consumes() (string, bool) {
	for _, p := range s.in.props {
		if s.in.required[p.name] && p.node.is("array") && p.node.items != nil && (p.node.items.is("object") || len(p.node.items.props) > 0) {
			return p.name, true
		}
	}
	return "", false
}

// How well a word names a field: by its whole name or title, by a word of it,
// by a synonym or an abbreviation, or only in the field's description.
const (
	fitWhole = 5
	fitWord  = 4
	fitAlike = 3
	fitAbout = 1
)

func (f *field) fit(stem string) int {
	switch {
	case len(f.name) == 1 && f.name[0] == stem, len(f.title) == 1 && f.title[0] == stem:
		return fitWhole
	case slices.Contains(f.name, stem), slices.Contains(f.title, stem):
		return fitWord
	}
	group := synonyms[stem]
	for _, part := range slices.Concat(f.name, f.title) {
		if group > 0 && synonyms[part] == group || abbreviates(part, stem) {
			return fitAlike
		}
	}
	if f.about[stem] {
		return fitAbout
	}
	return 0
}

// abbreviates reports whether a member name such as "mag" or "desc" is a word cut short.
func abbreviates(part, stem string) bool {
	return len(part) >= 3 && len(part) <= 5 && len(stem) >= len(part)+3 && stem[:len(part)] == part
}

// best returns the field that the stem names best among those wanted; the first
// of equals by the shortest name, then in schema order.
func (s *source) best(stem string, least int, want func(*field) bool) *field {
	var found *field
	fit := 0
	for _, f := range s.records.fields {
		if n := f.fit(stem); n >= least && want(f) && (n > fit || n == fit && len(f.name) < len(found.name)) {
			found, fit = f, n
		}
	}
	return found
}

func anyField(*field) bool    { return true }
func (f *field) orders() bool { return f.scalar() && !f.boolean() }
func (f *field) measure() bool {
	return f.numeric() && !f.id() && !f.when()
}

// sized returns the measure that an adjective without a dimension means: the
// one that is named like a size, else the one described by the adjective, else
// the only one.
func (s *source) sized(adjective string) *field {
	var measures []*field
	for _, f := range s.records.fields {
		if f.measure() && len(f.node.values) == 0 {
			measures = append(measures, f)
		}
	}
	for _, alike := range []func(*field) bool{
		func(f *field) bool { return overlaps(f.name, sizeWords) || overlaps(f.title, sizeWords) },
		func(f *field) bool { return f.about[stem(adjective)] },
	} {
		if i := slices.IndexFunc(measures, alike); i >= 0 {
			return measures[i]
		}
	}
	if len(measures) == 1 {
		return measures[0]
	}
	return nil
}

// timed returns the field that says when.
func (s *source) timed() *field {
	for _, fit := range []func(*field) bool{
		func(f *field) bool { return f.when() && len(f.name) == 1 && timeWords[f.name[0]] },
		(*field).when,
	} {
		if i := slices.IndexFunc(s.records.fields, fit); i >= 0 {
			return s.records.fields[i]
		}
	}
	return nil
}

// label returns the field by which people know a record.
func (s *source) label() *field {
	texts := func(f *field) bool { return f.text() && !f.id() && !f.when() }
	for _, fit := range []func(*field) bool{
		func(f *field) bool {
			return texts(f) && len(f.name) == 1 && (f.name[0] == "nam" || f.name[0] == "name")
		},
		func(f *field) bool { return texts(f) && (overlaps(f.name, nameWords) || overlaps(f.title, nameWords)) },
		func(f *field) bool { return f.scalar() && f.id() && overlaps(f.name, s.entity) },
		func(f *field) bool { return f.scalar() && f.id() },
		texts,
	} {
		if i := slices.IndexFunc(s.records.fields, fit); i >= 0 {
			return s.records.fields[i]
		}
	}
	return nil
}

// measured returns the field that an adjective asks about ("how strong"):
// numbers before texts, names before descriptions.
func (s *source) measured(adjective string) *field {
	base := stem(adjective)
	named := func(f *field) bool {
		names := slices.Concat(f.name, f.title)
		return overlaps(names, dimensions[base]) || slices.Contains(names, base)
	}
	for _, fit := range []func(*field) bool{
		func(f *field) bool { return f.measure() && named(f) },
		func(f *field) bool { return f.measure() && f.about[base] },
		func(f *field) bool { return f.orders() && !f.id() && named(f) },
	} {
		if i := slices.IndexFunc(s.records.fields, fit); i >= 0 {
			return s.records.fields[i]
		}
	}
	return nil
}
