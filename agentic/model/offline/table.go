package offline

import (
	"cmp"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
)

// table is what a skill returns, as far as its schemas say: records with columns.
type table struct {
	skill   string
	path    []string // from the document to the records
	single  bool     // the document is the one record
	plural  string   // what the records are called
	nouns   map[string]bool
	columns []*column
	nodes   int             // that were read
	speaks  map[string]bool // what may be said besides, where no columns are declared or there is one record
}

type column struct {
	Name     string   `json:"name"`           // as results call it
	Path     []string `json:"path,omitempty"` // from the record; none: wherever the name is found
	typ      string
	nullable bool
	required bool
	phrases  [][]string      // stems of its names
	about    map[string]bool // stems of its description
	values   []string        // texts that are declared
}

// Bounds of what is read of a schema.
const (
	maxDepth   = 5
	maxColumns = 200
	maxNodes   = 2000 // a definition may hold itself, many times
)

// tableOf reads what a skill returns.
func tableOf(s skill) *table {
	root := readSchema(s.OutputSchema)
	t := &table{skill: s.Name, nouns: map[string]bool{}, speaks: map[string]bool{}}
	if record, array, path := findRecords(root); record != nil {
		t.path = path
		t.plural = plural(array, record, path, s.Name)
		t.nouns = vocabulary(t.plural, strings.Join(path, " "), oneWord.FindString(record.Title))
		t.add(root, record, nil, true)
		return t
	}
	t.single = true
	t.nouns = vocabulary(s.Name)
	t.plural = strings.Join(stems(s.Name), " ")
	said := []string{s.Name, s.Description}
	for name, p := range readSchema(s.InputSchema).Properties {
		said = append(said, name, p.Title, p.Description)
	}
	t.speaks = vocabulary(said...)
	t.add(root, root, nil, true)
	return t
}

// addShape adds as columns what a step must return: all that is known of data
// that nobody declared.
func (t *table) addShape(returned json.RawMessage) *table {
	s := readSchema(returned)
	if s.Items != nil {
		s = s.Items
	}
	for _, name := range s.members() {
		if p := s.Properties[name].resolve(s); t.column(name) == nil && p.kind() != "array" && p.kind() != "object" {
			t.columns = append(t.columns, &column{Name: name, typ: p.kind(), phrases: [][]string{stems(name), {stem(name)}}})
		}
	}
	return t
}

// findRecords looks for the first array of objects, the nearest to the root.
func findRecords(root *schema) (record, array *schema, path []string) {
	type place struct {
		at   *schema
		path []string
	}
	level := []place{{root.resolve(root), nil}}
	for range maxDepth {
		var next []place
		for _, p := range level {
			if p.at.kind() == "array" {
				if r := p.at.Items.resolve(root); len(r.Properties) > 0 {
					return r, p.at, p.path
				}
				continue
			}
			if len(next) > maxNodes {
				break
			}
			for _, name := range p.at.members() {
				next = append(next, place{p.at.Properties[name].resolve(root), append(slices.Clone(p.path), name)})
			}
		}
		level = next
	}
	return nil, nil, nil
}

// oneWord is a name that a return_spec can have.
var oneWord = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]{0,63}$`)

// plural is what to call the records: the title of the array, or its name, or
// the first word of the skill's name.
func plural(array, record *schema, path []string, skill string) string {
	switch {
	case oneWord.MatchString(array.Title):
		return strings.ToLower(array.Title)
	case len(path) > 0:
		return path[len(path)-1]
	case oneWord.MatchString(record.Title):
		return strings.ToLower(record.Title)
	}
	for _, w := range parts(skill) {
		if !stop[w] {
			return strings.TrimSuffix(w, "s") + "s"
		}
	}
	return skill
}

// add makes columns of the scalars of a record and of the objects in it.
func (t *table) add(root, s *schema, path []string, required bool) {
	for _, name := range s.members() {
		p := s.Properties[name].resolve(root)
		at := append(slices.Clone(path), name)
		needed := required && slices.Contains(s.Required, name)
		if t.nodes++; t.nodes > maxNodes || len(at) > maxDepth || len(t.columns) >= maxColumns || p.Const != nil {
			continue
		}
		switch p.kind() {
		case "object":
			t.add(root, p, at, needed)
		case "string", "number", "integer", "boolean":
			c := newColumn(t, p, at, needed)
			if taken := slices.ContainsFunc(t.columns, func(d *column) bool { return d.Name == c.Name }); oneWord.MatchString(c.Name) && !taken {
				t.columns = append(t.columns, c)
			}
		}
	}
}

func newColumn(t *table, p *schema, path []string, required bool) *column {
	key := path[len(path)-1]
	c := &column{Name: key, Path: path, typ: p.kind(), nullable: !required || p.nullable(), required: required, about: vocabulary(p.Description), values: p.values()}
	if oneWord.MatchString(p.Title) {
		c.Name = strings.ToLower(p.Title)
	}
	if t.column(c.Name) != nil {
		c.Name = strings.Join(path, "_")
	}
	c.phrases = [][]string{stems(c.Name), {stem(c.Name)}, stems(key), {stem(key)}, stems(p.Title)}
	if short, ok := strings.CutSuffix(key, "_id"); ok && t.nouns[stem(short)] {
		c.phrases = append(c.phrases, []string{"id"})
	} else if ok {
		c.phrases = append(c.phrases, stems(short))
	}
	return c
}

// column finds a column by one of its names, in any form of its words.
func (t *table) column(name string) *column {
	return t.first(func(c *column) bool { return c.is(stems(name)) })
}

func (t *table) first(fits func(*column) bool) *column {
	if i := slices.IndexFunc(t.columns, fits); i >= 0 {
		return t.columns[i]
	}
	return nil
}

func (c *column) is(phrase []string) bool {
	return slices.ContainsFunc(c.phrases, func(p []string) bool { return len(p) > 0 && slices.Equal(p, phrase) })
}

func (c *column) numeric() bool { return (c.typ == "number" || c.typ == "integer") && !c.identifies() }

// identifies reports whether the column holds identifiers, of which nothing can
// be measured; own, whether those of the records themselves.
func (c *column) identifies() bool { return c.Name == "id" || strings.HasSuffix(c.Name, "_id") }

func (c *column) own() bool { return c.is([]string{"id"}) }

// label is the column that tells the records apart for a reader.
func (t *table) label() *column {
	named := t.first(func(c *column) bool { return slices.Contains([]string{"name", "title", "label", "place"}, c.Name) })
	return cmp.Or(named, t.first((*column).own), t.first(func(c *column) bool { return c.typ == "string" }))
}

// only is the column of numbers that fits, if there is only one.
func (t *table) only(fits func(*column) bool) *column {
	fitting := slices.DeleteFunc(slices.Clone(t.columns), func(c *column) bool { return !c.numeric() || !fits(c) })
	if len(fitting) == 1 {
		return fitting[0]
	}
	return nil
}

// measuredBy is the only column of numbers whose description has a word.
func (t *table) measuredBy(stem string) *column {
	return t.only(func(c *column) bool { return c.about[stem] })
}

// shape is how a return_spec writes the type of a column.
func (c *column) shape() string {
	if c.nullable {
		return c.typ + "|null"
	}
	return c.typ
}
