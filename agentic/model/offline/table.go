package offline

import (
	"cmp"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
)

// table is the output of a skill, as far as its schemas describe it: records with columns.
type table struct {
	skill   string
	path    []string // from the document to the records
	single  bool     // the document is the one record
	plural  string   // the noun for the records
	nouns   map[string]bool
	columns []*column
	nodes   int             // number of schema nodes read
	named   bool            // the request names the skill
	speaks  map[string]bool // words allowed besides, if there is one record or the skill is named
}

type column struct {
	Name     string   `json:"name"`           // its name in results
	Path     []string `json:"path,omitempty"` // from the record; none: wherever the name is found
	typ      string
	nullable bool
	required bool
	phrases  [][]string      // stems of its names
	about    map[string]bool // stems of its description
	values   []string        // texts that are declared
}

// maxNodes bounds the schema nodes read: a definition may contain itself, many times.
const maxNodes = 2000

// tableOf reads the output of a skill.
func tableOf(s skill) *table {
	root := readSchema(s.OutputSchema)
	t := &table{skill: s.Name, speaks: map[string]bool{}}
	if record, array, path := findRecords(root); record != nil {
		t.path, t.plural = path, plural(array, record, path, s.Name)
		t.nouns = vocabulary(t.plural, strings.Join(path, " "), oneWord.FindString(record.Title))
		t.add(root, record, nil, true)
		return t
	}
	t.single, t.plural, t.nouns = true, strings.Join(stems(s.Name), " "), vocabulary(s.Name)
	said := []string{s.Name, s.Description}
	for name, p := range readSchema(s.InputSchema).Properties {
		said = append(said, name, p.Title, p.Description)
	}
	t.speaks = vocabulary(said...)
	t.add(root, root, nil, true)
	return t
}

// addShape adds the members of a step's return shape as columns: all that is known about
// undeclared data.
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

// findRecords finds the array of objects that is nearest to the root.
func findRecords(root *schema) (record, array *schema, path []string) {
	type place struct {
		at   *schema
		path []string
	}
	open := []place{{root.resolve(root), nil}}
	for i := 0; i < len(open) && len(open) < maxNodes; i++ {
		p := open[i]
		if p.at.kind() == "array" {
			if r := p.at.Items.resolve(root); len(r.Properties) > 0 {
				return r, p.at, p.path
			}
			continue
		}
		for _, name := range p.at.members() {
			open = append(open, place{p.at.Properties[name].resolve(root), append(slices.Clone(p.path), name)})
		}
	}
	return nil, nil, nil
}

// oneWord matches a name that a return_spec can have.
var oneWord = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]{0,63}$`)

// plural returns the noun for the records: the title of the array, or its name, or the first word
// of the skill's name.
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

// add creates columns for the scalars of a record and of the objects in it.
func (t *table) add(root, s *schema, path []string, required bool) {
	for _, name := range s.members() {
		p := s.Properties[name].resolve(root)
		at := append(slices.Clone(path), name)
		needed := required && slices.Contains(s.Required, name)
		if t.nodes++; t.nodes > maxNodes || p.Const != nil {
			continue
		}
		switch p.kind() {
		case "object":
			t.add(root, p, at, needed)
		case "string", "number", "integer", "boolean":
			if c := newColumn(t, p, at, needed); oneWord.MatchString(c.Name) {
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
	if t.first(func(d *column) bool { return d.Name == c.Name }) != nil {
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

// identifies reports whether the column contains identifiers, which cannot be measured.
func (c *column) identifies() bool { return c.Name == "id" || strings.HasSuffix(c.Name, "_id") }

// label returns the column that identifies the records for a reader.
func (t *table) label() *column {
	named := t.first(func(c *column) bool { return slices.Contains([]string{"name", "title", "label", "place"}, c.Name) })
	own := t.first(func(c *column) bool { return c.is([]string{"id"}) })
	return cmp.Or(named, own, t.first(func(c *column) bool { return c.typ == "string" }))
}

// measure returns the only column of numbers, or with a word the only one whose description has
// it.
func (t *table) measure(stem string) *column {
	fitting := slices.DeleteFunc(slices.Clone(t.columns), func(c *column) bool { return !c.numeric() || stem != "" && !c.about[stem] })
	if len(fitting) == 1 {
		return fitting[0]
	}
	return nil
}

// shape returns the column in the notation of a return_spec.
func (c *column) shape() string {
	if c.nullable {
		return c.Name + ": " + c.typ + "|null"
	}
	return c.Name + ": " + c.typ
}

// example returns a column to compare by, for refusals.
func (t *table) example() string {
	required := t.first(func(c *column) bool { return c.numeric() && c.required })
	if c := cmp.Or(required, t.first((*column).numeric)); c != nil {
		return spaced(c.Name)
	}
	return "value"
}
